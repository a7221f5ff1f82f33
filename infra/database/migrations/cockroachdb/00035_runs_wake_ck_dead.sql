-- +goose NO TRANSACTION
-- +goose Up
ALTER TABLE runs ADD CONSTRAINT runs_wake_ck CHECK (state = 'dead' OR (wake_at IS NULL) = (state NOT IN ('queued', 'running', 'retrying')));
