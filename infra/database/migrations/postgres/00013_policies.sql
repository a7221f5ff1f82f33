-- +goose Up
ALTER TABLE schedules ADD COLUMN rules JSONB NOT NULL DEFAULT '{}';
ALTER TABLE timers
  ADD COLUMN runs_left INT8 NULL,
  ADD COLUMN purge_at TIMESTAMPTZ NULL;
CREATE INDEX timers_purge_idx ON timers (region, purge_at) WHERE purge_at IS NOT NULL;
ALTER TABLE runs ADD COLUMN late_at TIMESTAMPTZ NULL;
