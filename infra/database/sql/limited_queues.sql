-- The queues that have a limit, whoever's. Index: queues_pkey.
SELECT DISTINCT q.name
FROM queues AS q
WHERE q.region = $1
LIMIT 10000;
