package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// The scopes that an operation may ask for. Admin reaches everything, write
// includes read, and worker reaches none of the operations here.
const (
	scopeAdmin = "admin"
	scopeWrite = "write"
	scopeRead  = "read"
)

const (
	challenge    = `Bearer realm="fencepost"`
	maxKeyBytes  = 200
	maxCacheKeys = 1000
	// cacheTTL is also for how long a key that was taken back still works.
	cacheTTL = 10 * time.Second
)

type tenantKey struct{}

// tenantOf returns the tenant that require put there.
func tenantOf(ctx context.Context) uuid.UUID {
	tenant, _ := ctx.Value(tenantKey{}).(uuid.UUID)
	return tenant
}

// require lets a request pass whose key has the scope, and hands on its tenant.
func (a *api) require(scope string) func(huma.Context, func(huma.Context)) {
	return func(hc huma.Context, next func(huma.Context)) {
		key, err := a.keys.authenticate(hc.Context(), hc.Header("Authorization"))
		if err == nil && !reaches(key.Scopes, scope) {
			err = newProblem(http.StatusForbidden, codeForbidden, "the key does not have the scope "+scope).
				with("WWW-Authenticate", challenge+`, error="insufficient_scope", scope="`+scope+`"`)
		}
		if err != nil {
			a.refuse(hc, err)
			return
		}
		next(huma.WithValue(hc, tenantKey{}, key.TenantID))
	}
}

func reaches(scopes []string, need string) bool {
	return slices.Contains(scopes, scopeAdmin) || slices.Contains(scopes, need) ||
		need == scopeRead && slices.Contains(scopes, scopeWrite)
}

func unauthorized(detail string) *Problem {
	return newProblem(http.StatusUnauthorized, string(core.CodeUnauthorized), detail).with("WWW-Authenticate", challenge)
}

// keyring finds keys and remembers a bounded number of them for a short time,
// so that not every request costs a look-up. Safe for concurrent use.
type keyring struct {
	store core.KeyStore
	clock core.Clock

	mutex sync.Mutex
	known map[[32]byte]remembered
}

type remembered struct {
	key   core.APIKey
	until time.Time
}

// authenticate returns the key that an Authorization header holds. The look-up
// is by hash, so its time tells nothing about the keys that exist.
func (k *keyring) authenticate(ctx context.Context, header string) (core.APIKey, error) {
	scheme, text, _ := strings.Cut(header, " ")
	text = strings.TrimSpace(text)
	switch {
	case !strings.EqualFold(scheme, "Bearer"):
		return core.APIKey{}, unauthorized("send an API key in the header: Authorization: Bearer fp_...")
	case !strings.HasPrefix(text, keyPrefix), len(text) > maxKeyBytes:
		return core.APIKey{}, unauthorized("the API key is not valid")
	}
	hash := HashKey(text)
	if key, ok := k.recall(hash); ok {
		return key, nil
	}
	key, err := k.store.FindKey(ctx, hash)
	switch {
	case errors.Is(err, core.ErrNotFound):
		return core.APIKey{}, unauthorized("the API key is not valid")
	case err != nil:
		return core.APIKey{}, err
	}
	k.remember(hash, key)
	return key, nil
}

func (k *keyring) recall(hash [32]byte) (core.APIKey, bool) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	r, ok := k.known[hash]
	return r.key, ok && k.clock.Now().Before(r.until)
}

// remember keeps a key that exists. Wrong keys are not kept: they are without
// number and would push out the right ones.
func (k *keyring) remember(hash [32]byte, key core.APIKey) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	now := k.clock.Now()
	if len(k.known) >= maxCacheKeys {
		k.makeRoom(now)
	}
	k.known[hash] = remembered{key, now.Add(cacheTTL)}
}

func (k *keyring) makeRoom(now time.Time) {
	for hash, r := range k.known {
		if !now.Before(r.until) {
			delete(k.known, hash)
		}
	}
	for hash := range k.known {
		if len(k.known) < maxCacheKeys {
			return
		}
		delete(k.known, hash) // an arbitrary one
	}
}
