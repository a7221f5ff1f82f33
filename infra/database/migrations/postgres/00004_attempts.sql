-- +goose Up
CREATE TABLE attempts (
  region        TEXT NOT NULL,
  schedule_id   UUID NOT NULL,
  scheduled_for TIMESTAMPTZ NOT NULL,
  attempt       INT4 NOT NULL,
  tenant_id     UUID NOT NULL,
  fence         INT8 NOT NULL,
  started_at    TIMESTAMPTZ NULL,
  finished_at   TIMESTAMPTZ NOT NULL,
  error         TEXT NOT NULL,
  CONSTRAINT attempts_pkey PRIMARY KEY (schedule_id, scheduled_for, attempt, region)
);
