-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS runs_gate_idx ON runs (region, queue, gate, tenant_id, queued_at) WHERE state = 'queued' AND gate > 0;
