-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS backfills_wake_idx ON backfills (region, shard, wake_at) WHERE wake_at IS NOT NULL;
