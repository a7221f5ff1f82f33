package api

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fencepost/fencepost/core"
)

const (
	maxCacheKeys = 1000
	// cacheTTL is also for how long a key that was revoked by another process, or
	// beside the API, still works.
	cacheTTL = 10 * time.Second
	// The look-ups of keys that this process has never seen work are bounded, so
	// that wrong keys, which are without number, cannot keep the database busy.
	strangersPerSecond = 100
	strangersBurst     = 200
	// useTimeout bounds the record of a key's use, which is not worth waiting for.
	useTimeout = time.Second
)

var errUseTimeout = errors.New("recording the use of a key took longer than a second")

// keyring finds keys and remembers a bounded number of them, right ones and
// wrong ones, for a short time, so that not every request costs a look-up. Safe
// for concurrent use.
type keyring struct {
	store core.KeyStore
	clock core.Clock

	mutex sync.Mutex
	// known are keys that worked. They stay beyond their time while there is room:
	// to look them up anew needs no token of strangers.
	known     map[[32]byte]remembered
	wrong     map[[32]byte]time.Time // until when each is wrong without a look-up
	strangers bucket
}

type remembered struct {
	key   core.APIKey
	until time.Time
}

func newKeyring(store core.KeyStore, clock core.Clock) *keyring {
	return &keyring{store: store, clock: clock, known: map[[32]byte]remembered{}, wrong: map[[32]byte]time.Time{}}
}

// authenticate returns the key that an Authorization header holds. The look-up
// is by hash, so its time tells nothing about the keys that exist.
func (k *keyring) authenticate(ctx context.Context, header string) (core.APIKey, error) {
	hash, err := keyIn(header)
	if err != nil {
		return core.APIKey{}, err
	}
	key, known, err := k.recall(hash)
	if known || err != nil {
		return key, err
	}
	return k.find(ctx, hash)
}

// recall returns a key without a look-up if it may, and an error for one that is
// wrong or for which there is no look-up left.
func (k *keyring) recall(hash [32]byte) (core.APIKey, bool, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	now := k.clock.Now()
	if now.Before(k.wrong[hash]) {
		return core.APIKey{}, false, invalidKey()
	}
	r, seen := k.known[hash]
	if seen && now.Before(r.until) {
		return r.key, true, nil
	}
	if !seen {
		if wait, ok := k.strangers.take(now, strangersPerSecond, strangersBurst); !ok {
			return core.APIKey{}, false, rateLimited("too many unknown API keys are tried here", wait)
		}
	}
	return core.APIKey{}, false, nil
}

// find looks a key up and remembers what it found.
func (k *keyring) find(ctx context.Context, hash [32]byte) (core.APIKey, error) {
	asked := k.clock.Now()
	key, err := k.store.FindKey(ctx, hash)
	switch {
	case errors.Is(err, core.ErrNotFound):
		k.forget(hash)
		return core.APIKey{}, invalidKey()
	case err != nil:
		return core.APIKey{}, err
	}
	k.remember(key, asked)
	if asked.Sub(key.LastUsedAt) > time.Hour {
		k.markUsed(ctx, hash)
	}
	return key, nil
}

// markUsed records that a key is in use; without the record it works as well.
func (k *keyring) markUsed(ctx context.Context, hash [32]byte) {
	ctx, cancel := context.WithTimeoutCause(ctx, useTimeout, errUseTimeout)
	defer cancel()
	if err := k.store.MarkKeyUsed(ctx, hash); err != nil {
		loggerOf(ctx).WarnContext(ctx, "use of a key not recorded", "error", err)
	}
}

// remember keeps a key that was found by a look-up that began at asked, unless
// it was revoked here meanwhile.
func (k *keyring) remember(key core.APIKey, asked time.Time) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	now := k.clock.Now()
	if now.Before(k.wrong[key.Hash]) {
		return
	}
	until := asked.Add(cacheTTL)
	if !key.ExpiresAt.IsZero() && key.ExpiresAt.Before(until) {
		until = key.ExpiresAt
	}
	if _, seen := k.known[key.Hash]; !seen {
		k.strangers.giveBack() // it was a right one
		makeRoom(k.known, func(r remembered) bool { return !now.Before(r.until) })
	}
	k.known[key.Hash] = remembered{key, until}
}

// forget takes a key for wrong, for as long as a look-up under way may still
// answer otherwise.
func (k *keyring) forget(hash [32]byte) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	delete(k.known, hash)
	now := k.clock.Now()
	makeRoom(k.wrong, func(until time.Time) bool { return !now.Before(until) })
	k.wrong[hash] = now.Add(cacheTTL)
}

// makeRoom takes out of a full map what is over, and if nothing is, any one.
func makeRoom[V any](m map[[32]byte]V, over func(V) bool) {
	if len(m) < maxCacheKeys {
		return
	}
	for hash, v := range m {
		if over(v) {
			delete(m, hash)
		}
	}
	for hash := range m {
		if len(m) < maxCacheKeys {
			return
		}
		delete(m, hash)
	}
}
