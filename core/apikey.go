package core

import (
	"context"
	"encoding/hex"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// What a key may do. Admin reaches everything, write includes read, and worker
// is for processes that execute jobs: it reaches nothing of the others.
const (
	ScopeAdmin  = "admin"
	ScopeWrite  = "write"
	ScopeRead   = "read"
	ScopeWorker = "worker"
)

// Scopes are all scopes, the strongest first.
func Scopes() []string { return []string{ScopeAdmin, ScopeWrite, ScopeRead, ScopeWorker} }

// Reaches reports whether a key with these scopes may do what needs another.
func Reaches(scopes []string, need string) bool {
	return slices.Contains(scopes, ScopeAdmin) || slices.Contains(scopes, need) ||
		need == ScopeRead && slices.Contains(scopes, ScopeWrite)
}

// APIKey is a credential: it names a tenant. The key itself is stored nowhere.
type APIKey struct {
	Hash     [32]byte // SHA-256 of the key
	TenantID uuid.UUID
	Name     string
	Scopes   []string
	// ExpiresIn is for AddKey alone: how long the key works. Zero is for ever.
	ExpiresIn time.Duration
	// The times are the database's. Zero says that it never was, or never will.
	CreatedAt  time.Time
	ExpiresAt  time.Time
	RevokedAt  time.Time
	LastUsedAt time.Time // to the hour
}

// ID returns the name of the key in lists and logs: it begins the key's hash and
// is no secret, since nobody guesses 130 random bits by it.
func (k *APIKey) ID() string { return "key_" + hex.EncodeToString(k.Hash[:8]) }

// The bounds of a key's life.
const (
	MinKeyLife = time.Minute
	MaxKeyLife = 10 * 365 * day
)

// Check refuses a key that is not to be added. The errors name the field as the
// API calls it, and repeat nothing.
func (k *APIKey) Check() error {
	if err := checkKeyName(k.Name); err != nil {
		return err
	}
	if len(k.Scopes) == 0 {
		return Invalid("scopes", "is missing; name some of %s", strings.Join(Scopes(), ", "))
	}
	for i, scope := range k.Scopes {
		if !slices.Contains(Scopes(), scope) {
			return Invalid("scopes", "must be some of %s", strings.Join(Scopes(), ", "))
		}
		if slices.Contains(k.Scopes[:i], scope) {
			return Invalid("scopes", "names one twice")
		}
	}
	if k.ExpiresIn != 0 && (k.ExpiresIn < MinKeyLife || k.ExpiresIn > MaxKeyLife) {
		return Invalid("expires_in", "must be from %s to %s; leave it out for a key that never expires", FormatDuration(MinKeyLife), FormatDuration(MaxKeyLife))
	}
	return nil
}

func checkKeyName(name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return Invalid("name", "is missing; say who uses the key")
	case len(name) > MaxNameBytes:
		return Invalid("name", "is longer than %d bytes", MaxNameBytes)
	case !utf8.ValidString(name):
		return Invalid("name", "is not valid UTF-8")
	}
	for _, r := range name {
		if unicode.IsControl(r) {
			return Invalid("name", "has a control character")
		}
	}
	return nil
}

// ErrNoKey answers for a key that does not exist or is another tenant's. It
// matches ErrNotFound.
var ErrNoKey = &Error{Code: CodeNotFound, Kind: "not_found", Message: "no such key"}

// KeyMark is where a page of keys ended: keys sort by these two.
type KeyMark struct {
	CreatedAt time.Time
	ID        string
}

// KeyPage is a page of keys, with the database's time, which decides whether one
// has expired; it is zero where there are no keys.
type KeyPage struct {
	Keys []APIKey
	More bool
	Now  time.Time
}

// KeyStore keeps credentials. A key that was revoked stays in lists.
type KeyStore interface {
	// FindKey returns the key with this hash; ErrNoKey if there is none, if it
	// was revoked, or if it has expired.
	FindKey(ctx context.Context, hash [32]byte) (APIKey, error)
	// AddKey stores a key; one with the same hash is left as it is, so that it is
	// safe to repeat.
	AddKey(ctx context.Context, k APIKey) error
	// ListKeys returns a tenant's keys after a mark, oldest first, from 1 to 1,000
	// of them. The zero mark begins.
	ListKeys(ctx context.Context, tenant uuid.UUID, limit int, after KeyMark) (KeyPage, error)
	// RevokeKey ends a key of the tenant for good and returns it; ErrNoKey. The
	// time of the first call stays.
	RevokeKey(ctx context.Context, tenant uuid.UUID, id string) (APIKey, error)
	// MarkKeyUsed records that a key was used, unless that was recorded within the
	// hour before.
	MarkKeyUsed(ctx context.Context, hash [32]byte) error
}
