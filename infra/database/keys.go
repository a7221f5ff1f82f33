package database

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// FindKey implements core.KeyStore.
func (d *DB) FindKey(ctx context.Context, hash [32]byte) (core.APIKey, error) {
	type row struct {
		TenantID uuid.UUID
		Name     string
		Scopes   string
	}
	rows, err := query[row](ctx, d, "find_key", d.region, hash[:])
	if err != nil {
		return core.APIKey{}, err
	}
	if len(rows) == 0 {
		return core.APIKey{}, core.ErrNotFound
	}
	r := rows[0]
	return core.APIKey{Hash: hash, TenantID: r.TenantID, Name: r.Name, Scopes: strings.Fields(r.Scopes)}, nil
}

// AddKey implements core.KeyStore.
func (d *DB) AddKey(ctx context.Context, k core.APIKey) error {
	return d.exec(ctx, "add_key", d.region, k.Hash[:], pgID(k.TenantID), k.Name, strings.Join(k.Scopes, " "))
}
