-- +goose NO TRANSACTION
-- +goose Up
ALTER TABLE schedules ADD COLUMN labels JSONB NOT NULL DEFAULT '{}';
