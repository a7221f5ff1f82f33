-- +goose Up
CREATE TABLE shard_leases (
  region     TEXT NOT NULL,
  shard      INT2 NOT NULL,
  owner      TEXT NOT NULL,
  epoch      INT8 NOT NULL,
  expires_at TIMESTAMPTZ NOT NULL,
  CONSTRAINT shard_leases_pkey PRIMARY KEY (region, shard)
);
CREATE TABLE claimers (
  region     TEXT NOT NULL,
  owner      TEXT NOT NULL,
  expires_at TIMESTAMPTZ NOT NULL,
  CONSTRAINT claimers_pkey PRIMARY KEY (region, owner)
);
