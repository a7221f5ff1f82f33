-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX schedules_tenant_idx ON schedules (region, tenant_id, id) WHERE deleted_at IS NULL;
