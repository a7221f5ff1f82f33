-- When a credential was used last, to the hour: one write an hour at most, however
-- many processes see it. Index: api_keys_pkey.
UPDATE api_keys AS k
SET last_used_at = now()
WHERE k.region = $1 AND k.hash = $2::BYTEA AND (k.last_used_at IS NULL OR k.last_used_at < now() - INTERVAL '1 hour');
