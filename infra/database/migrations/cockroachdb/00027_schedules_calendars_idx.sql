-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS schedules_calendars_idx ON schedules (region, tenant_id, id) WHERE rules ? 'calendars' AND deleted_at IS NULL;
