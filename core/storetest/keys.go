package storetest

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

func keyTests() []test {
	return []test{
		{"keys are found by their hash", testKeys},
		{"keys that expire or are revoked are found no more", testKeyEnds},
		{"keys are listed oldest first, page by page", testKeyPages},
		{"keys are their tenant's alone", testKeyTenants},
		{"the use of a key is recorded once an hour", testKeyUse},
		{"a key's name must be text", testKeyText},
	}
}

// addKey stores a key of the tenant and returns it as it is kept.
func (w *world) addKey(name string, life time.Duration) core.APIKey {
	w.Helper()
	k := core.APIKey{Hash: sha256.Sum256([]byte(w.tenant.String() + name)), TenantID: w.tenant, Name: name, Scopes: []string{"read", "write"}, ExpiresIn: life}
	w.must(w.Store.AddKey(w.ctx, k))
	got, err := w.Store.FindKey(w.ctx, k.Hash)
	w.must(err)
	return got
}

func (w *world) keys(limit int, after core.KeyMark) core.KeyPage {
	w.Helper()
	page, err := w.Store.ListKeys(w.ctx, w.tenant, limit, after)
	w.must(err)
	return page
}

func testKeys(w *world) {
	hash := sha256.Sum256([]byte("fp_secret"))
	_, err := w.Store.FindKey(w.ctx, hash)
	w.fails("a key that is not there", core.ErrNoKey, err)
	k := core.APIKey{Hash: hash, TenantID: w.tenant, Name: "ci", Scopes: []string{"read", "write"}}
	w.must(w.Store.AddKey(w.ctx, k))
	again := k
	again.TenantID, again.Name, again.Scopes, again.ExpiresIn = uuid.New(), "thief", nil, time.Hour
	w.must(w.Store.AddKey(w.ctx, again))
	got, err := w.Store.FindKey(w.ctx, hash)
	w.must(err)
	k.CreatedAt = w.now()
	w.same("key", k, got)
	bare := core.APIKey{Hash: sha256.Sum256([]byte("other")), TenantID: w.tenant, Name: "bare", CreatedAt: w.now()}
	w.must(w.Store.AddKey(w.ctx, bare))
	got, err = w.Store.FindKey(w.ctx, bare.Hash)
	w.must(err)
	w.same("key without scopes", bare, got)
}

func testKeyEnds(w *world) {
	made := w.now()
	short, other := w.addKey("short", time.Hour), w.addKey("other", 0)
	w.same("expiry", made.Add(time.Hour), short.ExpiresAt)
	w.same("no expiry", time.Time{}, other.ExpiresAt)
	w.Advance(time.Hour - time.Microsecond)
	_, err := w.Store.FindKey(w.ctx, short.Hash)
	w.must(err)
	w.Advance(time.Microsecond)
	_, err = w.Store.FindKey(w.ctx, short.Hash)
	w.fails("a key that has expired", core.ErrNoKey, err)

	revoked, err := w.Store.RevokeKey(w.ctx, w.tenant, other.ID())
	w.must(err)
	other.RevokedAt = w.now()
	w.same("revoked key", other, revoked)
	_, err = w.Store.FindKey(w.ctx, other.Hash)
	w.fails("a key that was revoked", core.ErrNoKey, err)
	w.Advance(time.Minute)
	again, err := w.Store.RevokeKey(w.ctx, w.tenant, other.ID())
	w.must(err)
	w.same("key revoked twice", other, again)
	w.must(w.Store.AddKey(w.ctx, core.APIKey{Hash: other.Hash, TenantID: w.tenant, Name: "back", Scopes: []string{"admin"}}))
	_, err = w.Store.FindKey(w.ctx, other.Hash)
	w.fails("a revoked key that is added again", core.ErrNoKey, err)
	w.same("keys with their ends", core.KeyPage{Keys: byMark(short, other), Now: w.now()}, w.keys(10, core.KeyMark{}))
	_, err = w.Store.RevokeKey(w.ctx, w.tenant, "key_0000000000000000")
	w.fails("revoking what is not there", core.ErrNoKey, err)
}

// byMark returns keys in the order of lists.
func byMark(keys ...core.APIKey) []core.APIKey {
	slices.SortFunc(keys, func(a, b core.APIKey) int {
		if c := a.CreatedAt.Compare(b.CreatedAt); c != 0 {
			return c
		}
		return slices.Compare([]byte(a.ID()), []byte(b.ID()))
	})
	return keys
}

func testKeyPages(w *world) {
	w.same("no keys", core.KeyPage{}, w.keys(2, core.KeyMark{}))
	var all []core.APIKey
	for i := range 5 {
		if i != 3 { // two of one time are told apart by their ids
			w.Advance(time.Second)
		}
		all = append(all, w.addKey(fmt.Sprint("k", i), 0))
	}
	all = byMark(all...)
	var got []core.APIKey
	mark, more := core.KeyMark{}, true
	for n := 0; more; n++ {
		page := w.keys(2, mark)
		w.same("length of a page", min(2, len(all)-2*n), len(page.Keys))
		w.same("more", n < 2, page.More)
		if len(page.Keys) == 0 {
			break
		}
		last := page.Keys[len(page.Keys)-1]
		got, mark, more = append(got, page.Keys...), core.KeyMark{CreatedAt: last.CreatedAt, ID: last.ID()}, page.More
	}
	w.same("keys", all, got)
}

func testKeyTenants(w *world) {
	k := w.addKey("mine", 0)
	other := uuid.New()
	page, err := w.Store.ListKeys(w.ctx, other, 10, core.KeyMark{})
	w.must(err)
	w.same("keys of another tenant", core.KeyPage{}, page)
	_, err = w.Store.RevokeKey(w.ctx, other, k.ID())
	w.fails("revoking another tenant's key", core.ErrNoKey, err)
	got, err := w.Store.FindKey(w.ctx, k.Hash)
	w.must(err)
	w.same("key", k, got)
}

func testKeyUse(w *world) {
	k := w.addKey("used", 0)
	w.same("use of a fresh key", time.Time{}, k.LastUsedAt)
	begin := w.now()
	for _, step := range []struct{ pass, recorded time.Duration }{{0, 0}, {time.Hour, 0}, {time.Microsecond, time.Hour + time.Microsecond}} {
		w.Advance(step.pass)
		w.must(w.Store.MarkKeyUsed(w.ctx, k.Hash))
		got, err := w.Store.FindKey(w.ctx, k.Hash)
		w.must(err)
		w.same("recorded use", begin.Add(step.recorded), got.LastUsedAt)
	}
	w.must(w.Store.MarkKeyUsed(w.ctx, sha256.Sum256([]byte("nobody's"))))
}

func testKeyText(w *world) {
	for _, name := range []string{"a\x00", "a\xff"} {
		err := w.Store.AddKey(w.ctx, core.APIKey{Hash: sha256.Sum256([]byte(name)), TenantID: w.tenant, Name: name, Scopes: []string{"read"}})
		w.fails(fmt.Sprintf("a key named %q", name), core.ErrBadRow, err)
	}
}
