-- Whether a run of a day is still alive. Index: runs_wake_idx of that day.
SELECT EXISTS (
  SELECT 1 FROM runs AS r
  WHERE r.region = $1 AND r.scheduled_for >= $2::TIMESTAMPTZ AND r.scheduled_for < $3::TIMESTAMPTZ AND r.wake_at IS NOT NULL
) AS alive;
