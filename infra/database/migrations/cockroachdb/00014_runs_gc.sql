-- +goose NO TRANSACTION
-- +goose Up
ALTER TABLE runs CONFIGURE ZONE USING gc.ttlseconds = 600;
