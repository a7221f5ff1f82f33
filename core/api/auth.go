package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// The scopes that an operation may ask for.
const (
	scopeAdmin  = core.ScopeAdmin
	scopeWrite  = core.ScopeWrite
	scopeRead   = core.ScopeRead
	scopeWorker = core.ScopeWorker
)

const (
	challenge   = `Bearer realm="fencepost"`
	maxKeyBytes = 200
)

type callerKey struct{}

// callerOf returns the key that require put there.
func callerOf(ctx context.Context) core.APIKey {
	key, _ := ctx.Value(callerKey{}).(core.APIKey)
	return key
}

// tenantOf returns the tenant of that key.
func tenantOf(ctx context.Context) uuid.UUID { return callerOf(ctx).TenantID }

// require lets a request pass whose key has the scope, within the rate of its
// tenant, and hands on the key. With anew it does not trust what it remembers.
func (a *api) require(scope string, anew bool) func(huma.Context, func(huma.Context)) {
	return func(hc huma.Context, next func(huma.Context)) {
		key, err := a.keys.authenticate(hc.Context(), hc.Header("Authorization"))
		if err == nil {
			err = a.limits.admit(key.TenantID)
		}
		if err == nil && !core.Reaches(key.Scopes, scope) {
			err = newProblem(http.StatusForbidden, codeForbidden, "the key does not have the scope "+scope).
				with("WWW-Authenticate", challenge+`, error="insufficient_scope", scope="`+scope+`"`)
		}
		if err == nil && anew {
			key, err = a.keys.find(hc.Context(), key.Hash)
		}
		if err != nil {
			a.refuse(hc, err)
			return
		}
		next(huma.WithValue(hc, callerKey{}, key))
	}
}

func unauthorized(detail string) *Problem {
	return newProblem(http.StatusUnauthorized, string(core.CodeUnauthorized), detail).with("WWW-Authenticate", challenge)
}

// invalidKey does not say whether a key is unknown, has expired or was revoked:
// who asks may be anybody.
func invalidKey() *Problem {
	return unauthorized("the API key is not valid")
}

// keyIn returns the hash of the key that an Authorization header holds. What
// cannot be a key is refused without a look-up.
func keyIn(header string) ([32]byte, error) {
	scheme, text, _ := strings.Cut(header, " ")
	text = strings.TrimSpace(text)
	switch {
	case !strings.EqualFold(scheme, "Bearer"):
		return [32]byte{}, unauthorized("send an API key in the header: Authorization: Bearer fp_...")
	case !strings.HasPrefix(text, keyPrefix), len(text) > maxKeyBytes:
		return [32]byte{}, invalidKey()
	}
	return HashKey(text), nil
}
