package database

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// keyRow is a credential as the statements return it.
type keyRow struct {
	Hash       []byte
	TenantID   uuid.UUID
	Name       string
	Scopes     string
	CreatedAt  time.Time
	ExpiresAt  *time.Time
	RevokedAt  *time.Time
	LastUsedAt *time.Time
}

func (r *keyRow) key() core.APIKey {
	k := core.APIKey{
		TenantID: r.TenantID, Name: r.Name, Scopes: strings.Fields(r.Scopes),
		CreatedAt: r.CreatedAt.UTC(), ExpiresAt: utc(r.ExpiresAt), RevokedAt: utc(r.RevokedAt), LastUsedAt: utc(r.LastUsedAt),
	}
	copy(k.Hash[:], r.Hash)
	return k
}

// FindKey implements core.KeyStore.
func (d *DB) FindKey(ctx context.Context, hash [32]byte) (core.APIKey, error) {
	return one(query[keyRow](ctx, d, "find_key", d.region, hash[:]))
}

func one(rows []keyRow, err error) (core.APIKey, error) {
	if err != nil {
		return core.APIKey{}, err
	}
	if len(rows) == 0 {
		return core.APIKey{}, core.ErrNoKey
	}
	return rows[0].key(), nil
}

// AddKey implements core.KeyStore.
func (d *DB) AddKey(ctx context.Context, k core.APIKey) error {
	return d.exec(ctx, "add_key", d.region, k.Hash[:], pgID(k.TenantID), k.Name, strings.Join(k.Scopes, " "), nullDuration(k.ExpiresIn))
}

// ListKeys implements core.KeyStore.
func (d *DB) ListKeys(ctx context.Context, tenant uuid.UUID, limit int, after core.KeyMark) (core.KeyPage, error) {
	type row struct {
		DBNow time.Time
		keyRow
	}
	rows, err := query[row](ctx, d, "list_keys", d.region, pgID(tenant), after.CreatedAt, after.ID, limit+1)
	if err != nil {
		return core.KeyPage{}, err
	}
	page := core.KeyPage{Keys: each(rows[:min(len(rows), limit)], func(r row) core.APIKey { return r.key() }), More: len(rows) > limit}
	if len(rows) > 0 {
		page.Now = rows[0].DBNow.UTC()
	}
	return page, nil
}

// RevokeKey implements core.KeyStore.
func (d *DB) RevokeKey(ctx context.Context, tenant uuid.UUID, id string) (core.APIKey, error) {
	return one(query[keyRow](ctx, d, "revoke_key", d.region, pgID(tenant), id))
}

// MarkKeyUsed implements core.KeyStore.
func (d *DB) MarkKeyUsed(ctx context.Context, hash [32]byte) error {
	return d.exec(ctx, "mark_key_used", d.region, hash[:])
}
