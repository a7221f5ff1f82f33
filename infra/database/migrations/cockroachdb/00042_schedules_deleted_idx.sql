-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS schedules_deleted_idx ON schedules (region, deleted_at) WHERE deleted_at IS NOT NULL;
