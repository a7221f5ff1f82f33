-- +goose Up
CREATE TABLE schedules (
  region        TEXT NOT NULL,
  id            UUID NOT NULL,
  tenant_id     UUID NOT NULL,
  name          TEXT NOT NULL,
  spec          TEXT NOT NULL,
  time_zone     TEXT NOT NULL,
  anchor        TIMESTAMPTZ NULL,
  queue         TEXT NOT NULL,
  payload       JSONB NOT NULL,
  misfire       TEXT NOT NULL,
  misfire_grace INTERVAL NOT NULL,
  overlap       TEXT NOT NULL,
  spread        INTERVAL NOT NULL,
  timeout       INTERVAL NOT NULL,
  max_attempts  INT4 NOT NULL,
  paused        BOOL NOT NULL,
  version       INT8 NOT NULL,
  created_at    TIMESTAMPTZ NOT NULL,
  updated_at    TIMESTAMPTZ NOT NULL,
  deleted_at    TIMESTAMPTZ NULL,
  CONSTRAINT schedules_pkey PRIMARY KEY (id, region),
  CONSTRAINT schedules_misfire_ck CHECK (misfire IN ('run_once', 'skip', 'run_all')),
  CONSTRAINT schedules_overlap_ck CHECK (overlap IN ('skip', 'allow', 'queue_one', 'cancel_previous')),
  CONSTRAINT schedules_max_attempts_ck CHECK (max_attempts > 0)
);
CREATE UNIQUE INDEX schedules_name_key ON schedules (region, tenant_id, name) WHERE deleted_at IS NULL;
CREATE INDEX schedules_tenant_idx ON schedules (region, tenant_id, id) WHERE deleted_at IS NULL;
