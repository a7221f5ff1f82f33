-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS attempts_age_idx ON attempts (region, scheduled_for, schedule_id, attempt);
