-- Failed attempts of slots from before a time whose runs are gone, of the next 1,000
-- after a place; the place where the next look begins is returned, with how many went.
-- What is left belongs to runs that stay.
-- Index: attempts_age_idx, then runs_pkey and attempts_pkey by key.
WITH old AS MATERIALIZED (
  SELECT i.region, i.scheduled_for, i.schedule_id, i.attempt
  FROM attempts AS i
  WHERE i.region = $1 AND i.scheduled_for < $2::TIMESTAMPTZ
    AND (i.scheduled_for, i.schedule_id, i.attempt) > ($3::TIMESTAMPTZ, $4::UUID, $5::INT4)
  ORDER BY i.scheduled_for, i.schedule_id, i.attempt
  LIMIT 1000
), lonely AS MATERIALIZED (
  SELECT o.region, o.scheduled_for, o.schedule_id, o.attempt
  FROM old AS o
  LEFT JOIN LATERAL (
    SELECT r.fence
    FROM runs AS r
    WHERE r.region = o.region AND r.schedule_id = o.schedule_id AND r.scheduled_for = o.scheduled_for
    LIMIT 1
  ) AS f ON true
  WHERE f.fence IS NULL
), gone AS (
  DELETE FROM attempts AS a
  USING lonely AS l
  WHERE a.region = $1 AND a.schedule_id = l.schedule_id AND a.scheduled_for = l.scheduled_for AND a.attempt = l.attempt
  RETURNING a.attempt
)
SELECT o.scheduled_for, o.schedule_id, o.attempt, (SELECT count(*) FROM old AS n) AS seen, (SELECT count(*) FROM gone AS g) AS dropped
FROM old AS o
ORDER BY o.scheduled_for DESC, o.schedule_id DESC, o.attempt DESC
LIMIT 1;
