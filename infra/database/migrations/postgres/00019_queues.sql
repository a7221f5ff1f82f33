-- +goose Up
-- How many runs of a queue may be running: of all tenants (the zero tenant), or of one.
CREATE TABLE queues (
  region      TEXT NOT NULL,
  name        TEXT NOT NULL,
  tenant_id   UUID NOT NULL,
  concurrency INT4 NOT NULL,
  updated_at  TIMESTAMPTZ NOT NULL,
  CONSTRAINT queues_pkey PRIMARY KEY (region, name, tenant_id),
  CONSTRAINT queues_concurrency_ck CHECK (concurrency BETWEEN 0 AND 1000)
);
-- One row for each run that may be running, with the run that has it, or had it last.
CREATE TABLE permits (
  region        TEXT NOT NULL,
  queue         TEXT NOT NULL,
  tenant_id     UUID NOT NULL,
  n             INT4 NOT NULL,
  version       INT8 NOT NULL,
  schedule_id   UUID NULL,
  scheduled_for TIMESTAMPTZ NULL,
  fence         INT8 NULL,
  CONSTRAINT permits_pkey PRIMARY KEY (region, queue, tenant_id, n)
);
-- 0: no limit is known to hold it; 1: it waits for a permit; 2: it was let go to get one.
ALTER TABLE runs ADD COLUMN gate INT2 NOT NULL DEFAULT 0;
CREATE INDEX runs_gate_idx ON runs (region, queue, gate, tenant_id, queued_at) WHERE state = 'queued' AND gate > 0;
