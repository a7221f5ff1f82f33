-- +goose Up
CREATE INDEX attempts_age_idx ON attempts (region, scheduled_for, schedule_id, attempt);
CREATE INDEX schedules_deleted_idx ON schedules (region, deleted_at) WHERE deleted_at IS NOT NULL;
