-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS backfills_finished_idx ON backfills (region, finished_at) WHERE finished_at IS NOT NULL;
