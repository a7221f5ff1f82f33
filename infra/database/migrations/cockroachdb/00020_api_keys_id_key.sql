-- +goose NO TRANSACTION
-- +goose Up
CREATE UNIQUE INDEX api_keys_id_key ON api_keys (region, tenant_id, id);
