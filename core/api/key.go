package api

import (
	"crypto/rand"
	"crypto/sha256"
	"strings"
)

// keyPrefix makes a leaked key easy to find by secret scanners.
const keyPrefix = "fp_"

// DefaultTenant owns what the key of fencepost up makes, so that its schedules
// are found again when that key is lost.
const DefaultTenant = "00000000-0000-7000-8000-000000000001"

// NewKey returns a fresh API key of 130 random bits and its hash. Only the hash
// is to be stored; the key is shown to its owner once.
func NewKey() (string, [32]byte) {
	key := keyPrefix + strings.ToLower(rand.Text())
	return key, HashKey(key)
}

// HashKey returns the SHA-256 of a key, under which a core.KeyStore has it. A
// plain hash is enough for a key that is random and long.
func HashKey(key string) [32]byte {
	return sha256.Sum256([]byte(key))
}
