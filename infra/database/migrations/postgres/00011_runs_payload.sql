-- +goose Up
ALTER TABLE runs ADD COLUMN payload JSONB NULL;
