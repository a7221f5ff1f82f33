-- +goose NO TRANSACTION
-- +goose Up
CREATE UNIQUE INDEX schedules_name_key ON schedules (region, tenant_id, name) WHERE deleted_at IS NULL;
