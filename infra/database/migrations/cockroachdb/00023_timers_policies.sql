-- +goose NO TRANSACTION
-- +goose Up
ALTER TABLE timers
  ADD COLUMN runs_left INT8 NULL,
  ADD COLUMN purge_at TIMESTAMPTZ NULL;
