-- A limit ends. Its permits stay, so that their versions never repeat.
-- Index: queues_pkey by key.
DELETE FROM queues AS q
WHERE q.region = $1 AND q.name = $2::TEXT AND q.tenant_id = $3::UUID
RETURNING q.name;
