-- +goose Up
CREATE TABLE timers (
  region      TEXT NOT NULL,
  shard       INT2 NOT NULL,
  fire_at     TIMESTAMPTZ NOT NULL,
  schedule_id UUID NOT NULL,
  tenant_id   UUID NOT NULL,
  fence       INT8 NOT NULL,
  done        TIMESTAMPTZ NOT NULL,
  last_run    TIMESTAMPTZ NULL,
  open_from   TIMESTAMPTZ NULL,
  parked      BOOL NOT NULL DEFAULT false,
  CONSTRAINT timers_pkey PRIMARY KEY (region, shard, fire_at, schedule_id),
  CONSTRAINT timers_shard_ck CHECK (shard BETWEEN 0 AND 63)
);
CREATE UNIQUE INDEX timers_schedule_key ON timers (schedule_id, region);
