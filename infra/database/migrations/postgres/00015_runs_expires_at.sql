-- +goose Up
ALTER TABLE runs ADD COLUMN expires_at TIMESTAMPTZ NULL;
