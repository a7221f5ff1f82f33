-- +goose Up
ALTER TABLE schedules
  ADD COLUMN dst_gap TEXT NULL CONSTRAINT schedules_dst_gap_ck CHECK (dst_gap IN ('run_after', 'skip')),
  ADD COLUMN dst_overlap TEXT NULL CONSTRAINT schedules_dst_overlap_ck CHECK (dst_overlap IN ('first', 'both')),
  ADD COLUMN exact BOOL NOT NULL DEFAULT false,
  ADD COLUMN catch_up_within INTERVAL NULL;
