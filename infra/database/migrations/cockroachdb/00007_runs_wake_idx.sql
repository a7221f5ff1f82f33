-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX runs_wake_idx ON runs (region, shard, wake_at) WHERE wake_at IS NOT NULL;
