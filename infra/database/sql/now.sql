-- The database's clock, which decides what is due. No index.
SELECT now() AS db_now;
