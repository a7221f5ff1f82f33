package memory

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// FindKey implements core.KeyStore.
func (s *Store) FindKey(ctx context.Context, hash [32]byte) (core.APIKey, error) {
	now, err := s.begin(ctx, "find key")
	if err != nil {
		return core.APIKey{}, err
	}
	defer s.mu.Unlock()
	k, ok := s.keys[hash]
	if !ok || !k.RevokedAt.IsZero() || !k.ExpiresAt.IsZero() && !k.ExpiresAt.After(now) {
		return core.APIKey{}, core.ErrNoKey
	}
	return shared(k), nil
}

// shared returns a key that may leave the store.
func shared(k core.APIKey) core.APIKey {
	k.Scopes = slices.Clone(k.Scopes)
	return k
}

// AddKey implements core.KeyStore.
func (s *Store) AddKey(ctx context.Context, k core.APIKey) error {
	now, err := s.begin(ctx, "add key")
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	if err := checkText(append(k.Scopes, k.Name)...); err != nil {
		return err
	}
	if _, ok := s.keys[k.Hash]; ok {
		return nil
	}
	fresh := core.APIKey{
		Hash: k.Hash, TenantID: k.TenantID, Name: k.Name, Scopes: strings.Fields(strings.Join(k.Scopes, " ")), CreatedAt: now,
	}
	if k.ExpiresIn != 0 {
		fresh.ExpiresAt = after(now, k.ExpiresIn)
	}
	s.keys[k.Hash] = fresh
	return nil
}

// ListKeys implements core.KeyStore.
func (s *Store) ListKeys(ctx context.Context, tenant uuid.UUID, limit int, mark core.KeyMark) (core.KeyPage, error) {
	now, err := s.begin(ctx, "list keys")
	if err != nil {
		return core.KeyPage{}, err
	}
	defer s.mu.Unlock()
	var page core.KeyPage
	for _, k := range s.keys {
		if k.TenantID == tenant && compareMarks(markOf(&k), mark) > 0 {
			page.Keys = append(page.Keys, shared(k))
		}
	}
	slices.SortFunc(page.Keys, func(a, b core.APIKey) int { return compareMarks(markOf(&a), markOf(&b)) })
	if len(page.Keys) > 0 {
		page.Now = now
	}
	if len(page.Keys) > limit {
		page.Keys, page.More = page.Keys[:limit], true
	}
	return page, nil
}

func markOf(k *core.APIKey) core.KeyMark { return core.KeyMark{CreatedAt: k.CreatedAt, ID: k.ID()} }

func compareMarks(a, b core.KeyMark) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
}

// RevokeKey implements core.KeyStore.
func (s *Store) RevokeKey(ctx context.Context, tenant uuid.UUID, id string) (core.APIKey, error) {
	now, err := s.begin(ctx, "revoke key")
	if err != nil {
		return core.APIKey{}, err
	}
	defer s.mu.Unlock()
	for hash, k := range s.keys {
		if k.TenantID != tenant || k.ID() != id {
			continue
		}
		if k.RevokedAt.IsZero() {
			k.RevokedAt = now
		}
		s.keys[hash] = k
		return shared(k), nil
	}
	return core.APIKey{}, core.ErrNoKey
}

// MarkKeyUsed implements core.KeyStore.
func (s *Store) MarkKeyUsed(ctx context.Context, hash [32]byte) error {
	now, err := s.begin(ctx, "mark key used")
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	if k, ok := s.keys[hash]; ok && (k.LastUsedAt.IsZero() || k.LastUsedAt.Before(now.Add(-time.Hour))) {
		k.LastUsedAt = now
		s.keys[hash] = k
	}
	return nil
}
