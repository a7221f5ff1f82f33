-- +goose Up
ALTER TABLE idempotency_keys ADD COLUMN leased JSONB NULL;
