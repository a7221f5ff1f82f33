-- +goose NO TRANSACTION
-- +goose Up
ALTER TABLE idempotency_keys ADD COLUMN leased JSONB NULL;
