-- +goose Up
CREATE TABLE calendars (
  region     TEXT NOT NULL,
  tenant_id  UUID NOT NULL,
  name       TEXT NOT NULL,
  content    JSONB NOT NULL,
  version    INT8 NOT NULL,
  created_at TIMESTAMPTZ NOT NULL,
  updated_at TIMESTAMPTZ NOT NULL,
  CONSTRAINT calendars_pkey PRIMARY KEY (region, tenant_id, name)
);
-- The schedules that name a calendar, which few do.
CREATE INDEX schedules_calendars_idx ON schedules (region, tenant_id, id) WHERE rules ? 'calendars' AND deleted_at IS NULL;
