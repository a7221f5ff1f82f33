-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS backfills_schedule_idx ON backfills (region, schedule_id, id);
