-- What the database is. Index: none needed, it reads no table of schedules.
SELECT now() AS db_now, version() AS server;
