-- +goose NO TRANSACTION
-- +goose Up
ALTER TABLE runs ADD COLUMN payload JSONB NULL;
