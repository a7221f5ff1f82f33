-- +goose NO TRANSACTION
-- +goose Up
ALTER TABLE timers CONFIGURE ZONE USING gc.ttlseconds = 600;
