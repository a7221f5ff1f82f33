-- +goose NO TRANSACTION
-- +goose Up
ALTER TABLE schedules ADD COLUMN rules JSONB NOT NULL DEFAULT '{}';
