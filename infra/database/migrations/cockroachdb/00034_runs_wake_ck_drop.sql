-- +goose NO TRANSACTION
-- +goose Up
ALTER TABLE runs DROP CONSTRAINT runs_wake_ck;
