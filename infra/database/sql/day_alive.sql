-- Whether a run of a day is still alive, in any region: a day is dropped for all
-- of them. Index: runs_wake_idx of that day.
SELECT EXISTS (
  SELECT 1 FROM runs AS r
  WHERE r.scheduled_for >= $1::TIMESTAMPTZ AND r.scheduled_for < $2::TIMESTAMPTZ AND r.wake_at IS NOT NULL
) AS alive;
