-- A claimer is gone, and so are those that died a day ago. Index: claimers_pkey.
DELETE FROM claimers AS c
WHERE c.region = $1 AND (c.owner = $2::TEXT OR c.expires_at < now() - INTERVAL '1 day');
