package api

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// KeyInput is the body that makes a key. It documents the fields and serves
// clients, as ScheduleInput does.
type KeyInput struct {
	_         struct{} `additionalProperties:"false"`
	Name      string   `json:"name" doc:"Who uses the key, at most 200 bytes. Several keys may have one name." example:"deploy pipeline"`
	Scopes    []string `json:"scopes" nullable:"false" enum:"admin,write,read,worker" doc:"What the key may do: admin everything, write includes read, worker nothing but to execute jobs." example:"[\"write\"]"`
	ExpiresIn string   `json:"expires_in,omitempty" doc:"How long the key works, from 1m to 10 years. Without it, until it is revoked." example:"90d"`
}

// Key is a key as lists show it: without its secret, which is stored nowhere.
type Key struct {
	ID         string     `json:"id" doc:"Its name in lists and logs; no secret." example:"key_0123456789abcdef"`
	Name       string     `json:"name"`
	Scopes     []string   `json:"scopes" nullable:"false"`
	State      string     `json:"state" enum:"active,expired,revoked"`
	Current    bool       `json:"current" doc:"Whether this request was made with it."`
	CreatedAt  time.Time  `json:"created_at"`
	ExpiresAt  *time.Time `json:"expires_at,omitempty"`
	RevokedAt  *time.Time `json:"revoked_at,omitempty"`
	LastUsedAt *time.Time `json:"last_used_at,omitempty" doc:"To the hour."`
}

// CreatedKey is a fresh key with its secret, which is shown this once.
type CreatedKey struct {
	Key
	Secret string `json:"secret" doc:"What goes into the Authorization header. It is shown this once and cannot be had again."`
}

func showKey(k *core.APIKey, now time.Time, caller core.APIKey) Key {
	state := "active"
	switch {
	case !k.RevokedAt.IsZero():
		state = "revoked"
	case !k.ExpiresAt.IsZero() && !k.ExpiresAt.After(now):
		state = "expired"
	}
	return Key{
		ID: k.ID(), Name: k.Name, Scopes: k.Scopes, State: state, Current: k.Hash == caller.Hash,
		CreatedAt: k.CreatedAt, ExpiresAt: optional(k.ExpiresAt), RevokedAt: optional(k.RevokedAt), LastUsedAt: optional(k.LastUsedAt),
	}
}

type (
	createKeyInput  struct{ RawBody []byte }
	createKeyOutput struct{ Body CreatedKey }
	keysInput       struct {
		Limit  string `query:"limit"`
		Cursor string `query:"cursor" doc:"The next_cursor of the page before."`
	}
	keysOutput struct{ Body List[Key] }
	keyID      struct {
		ID string `path:"id" doc:"The key's id: key_..."`
	}
)

// addKeys registers what admins do with the keys of their own tenant. A key that
// may give scopes has all of them. It is looked up anew each time: one that was
// revoked elsewhere a moment ago must not make another.
func (a *api) addKeys() {
	tags := []string{"keys"}
	schema := a.huma.OpenAPI().Components.Schemas.Schema(typeOf[KeyInput](), false, "")
	handle(a, operation{scope: scopeAdmin, anew: true, Operation: huma.Operation{
		OperationID: "createKey", Method: http.MethodPost, Path: "/v1/keys", Tags: tags,
		Summary: "Make an API key", DefaultStatus: http.StatusCreated,
		Description: "Its secret is in the answer and nowhere else, so an Idempotency-Key cannot bring it again: revoke a key whose answer was lost. " +
			"The key belongs to the tenant of the one that asks.",
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{mediaJSON: {Schema: schema}}},
	}}, a.createKey)
	handle(a, operation{scope: scopeAdmin, anew: true, Operation: huma.Operation{
		OperationID: "listKeys", Method: http.MethodGet, Path: "/v1/keys", Tags: tags,
		Summary: "List API keys, oldest first", Description: "Those that were revoked or have expired too. No secret is shown.",
		Parameters: limitParam(),
	}}, a.listKeys)
	handle(a, operation{scope: scopeAdmin, anew: true, Operation: huma.Operation{
		OperationID: "revokeKey", Method: http.MethodDelete, Path: "/v1/keys/{id}", Tags: tags,
		Summary: "Revoke an API key",
		Description: "For good: at once in the process that answers, within 10 seconds in others. Revoking it again is no error. " +
			"The key that makes the request is refused as own_key, so that a tenant keeps one.",
	}}, a.revokeKey)
}

func (a *api) createKey(ctx context.Context, tenant uuid.UUID, in *createKeyInput) (*createKeyOutput, error) {
	key, err := decodeKey(in.RawBody)
	if err != nil {
		return nil, err
	}
	key.TenantID = tenant
	made, err := IssueKey(ctx, a.keys.store, key)
	if err != nil {
		return nil, err
	}
	caller := callerOf(ctx)
	logKey(ctx, "key created", made.ID, made.Name, caller, "scopes", made.Scopes)
	return &createKeyOutput{made}, nil
}

// IssueKey stores a key that Check has passed, and returns it with its secret,
// which is in no other place.
func IssueKey(ctx context.Context, store core.KeyStore, key core.APIKey) (CreatedKey, error) {
	secret, hash := NewKey()
	key.Hash = hash
	var err error
	for range 3 { // one of unknown outcome is sent again, which adds nothing twice
		if err = store.AddKey(ctx, key); !errors.Is(err, core.ErrUnknownOutcome) {
			break
		}
	}
	if err != nil {
		return CreatedKey{}, err
	}
	made, err := store.FindKey(ctx, hash)
	if err != nil {
		return CreatedKey{}, err
	}
	return CreatedKey{showKey(&made, made.CreatedAt, core.APIKey{}), secret}, nil
}

// logKey tells who changed which key, for those who look into a break-in.
func logKey(ctx context.Context, what, id, name string, by core.APIKey, more ...any) {
	loggerOf(ctx).InfoContext(ctx, what, append([]any{"key_id", id, "key_name", name, "tenant_id", by.TenantID, "by_key_id", by.ID()}, more...)...)
}

func (a *api) listKeys(ctx context.Context, tenant uuid.UUID, in *keysInput) (*keysOutput, error) {
	limit, err := parseLimit(in.Limit)
	if err != nil {
		return nil, err
	}
	l := listing{"keys", tenant, nil}
	position, err := l.parse(in.Cursor, 16)
	if err != nil {
		return nil, err
	}
	var after core.KeyMark
	if position != nil {
		after.ID = keyIDPrefix + hex.EncodeToString(position[slotBytes:])
		if after.CreatedAt, err = parseSlot(position[:slotBytes]); err != nil {
			return nil, err
		}
	}
	page, err := a.keys.store.ListKeys(ctx, tenant, limit, after)
	if err != nil {
		return nil, err
	}
	caller := callerOf(ctx)
	show := func(k core.APIKey) Key { return showKey(&k, page.Now, caller) }
	return &keysOutput{list(page.Keys, page.More, show, func() string {
		last := page.Keys[len(page.Keys)-1]
		return l.format(append(formatSlot(last.CreatedAt), last.Hash[:8]...))
	})}, nil
}

func (a *api) revokeKey(ctx context.Context, tenant uuid.UUID, in *keyID) (*struct{}, error) {
	if err := checkKeyID(in.ID); err != nil {
		return nil, err
	}
	caller := callerOf(ctx)
	if in.ID == caller.ID() {
		return nil, newProblem(http.StatusConflict, codeOwnKey, "this key makes the request; revoke it with another key that has the scope admin")
	}
	key, err := a.keys.store.RevokeKey(ctx, tenant, in.ID)
	if errors.Is(err, core.ErrUnknownOutcome) { // sent again, it changes nothing
		key, err = a.keys.store.RevokeKey(ctx, tenant, in.ID)
	}
	if err != nil {
		return nil, err
	}
	a.keys.forget(key.Hash)
	logKey(ctx, "key revoked", key.ID(), key.Name, caller)
	return nil, nil
}

const keyIDPrefix = "key_"

// checkKeyID refuses what names no key.
func checkKeyID(text string) error {
	digits, ok := strings.CutPrefix(text, keyIDPrefix)
	b, err := hex.DecodeString(digits)
	if !ok || err != nil || len(b) != binary.Size(uint64(0)) || hex.EncodeToString(b) != digits {
		return core.ErrNoKey
	}
	return nil
}

// decodeKey reads the body that makes a key.
func decodeKey(body []byte) (core.APIKey, error) {
	var k core.APIKey
	d, object, err := open(body)
	if err != nil {
		return k, err
	}
	for i, name := range object.names {
		value := object.values[i]
		switch name {
		case "name":
			if text := d.text(value, name); text != nil {
				k.Name = *text
			}
		case "scopes":
			for _, item := range d.list(value, name, 1, len(core.Scopes())) {
				if scope := d.text(item, name); scope != nil {
					k.Scopes = append(k.Scopes, *scope)
				}
			}
		case "expires_in":
			if life := d.duration(value, name); life != nil {
				k.ExpiresIn = max(*life, 1) // zero is refused like all that is too short
			}
		default:
			d.unknown(name)
		}
	}
	if err := d.err(); err != nil {
		return k, err
	}
	return k, k.Check()
}
