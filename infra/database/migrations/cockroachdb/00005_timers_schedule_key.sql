-- +goose NO TRANSACTION
-- +goose Up
CREATE UNIQUE INDEX timers_schedule_key ON timers (region, schedule_id);
