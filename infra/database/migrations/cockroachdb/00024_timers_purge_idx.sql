-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS timers_purge_idx ON timers (region, purge_at) WHERE purge_at IS NOT NULL;
