// Package profile keeps where the API is and with which key it is called, and
// exists so that the commands find what fencepost up started.
package profile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/fencepost/fencepost/core/api/client"
)

// maxProfileBytes bounds what is read of a file that may not be ours.
const maxProfileBytes = 64 << 10

// Profile says where the API is and who asks. The key is a secret.
type Profile struct {
	URL string `json:"url"`
	Key string `json:"key"`
	// Keys are the keys of other addresses by URL: those that the profile
	// named before.
	Keys map[string]string `json:"keys,omitempty"`
}

// Renamed returns the profile with another address and key, which keeps what it
// knew. A key is stored nowhere else.
func (p Profile) Renamed(url, key string) Profile {
	next := Profile{URL: url, Key: key, Keys: map[string]string{}}
	maps.Copy(next.Keys, p.Keys)
	if p.URL != "" {
		next.Keys[p.URL] = p.Key
	}
	delete(next.Keys, url)
	return next
}

// KeyFor returns the key of an address, "" if the profile knows none.
func (p Profile) KeyFor(url string) string {
	if url == p.URL {
		return p.Key
	}
	return p.Keys[url]
}

// ErrNone says that neither the environment nor a profile names an API.
var ErrNone = errors.New("no API is known; start one with fencepost up, or set " + client.EnvURL + " and " + client.EnvKey)

// Path returns where the profile is: below $XDG_CONFIG_HOME, or below
// ~/.config without one. It fails when there is no home folder either.
func Path(getenv func(string) string) (string, error) {
	dir := getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) { // the specification says to ignore relative ones
		home := getenv("HOME")
		if home == "" {
			var err error
			if home, err = os.UserHomeDir(); err != nil {
				return "", fmt.Errorf("find the profile: %w", err)
			}
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "fencepost", "profile.json"), nil
}

// Read reads the file that Save wrote; ErrNone if there is
// none.
func Read(path string) (Profile, error) {
	var p Profile
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p, ErrNone
	case err != nil:
		return p, fmt.Errorf("read the profile: %w", err)
	case info.Size() > maxProfileBytes:
		return p, fmt.Errorf("read the profile: %s is larger than %d bytes", path, maxProfileBytes)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return p, fmt.Errorf("read the profile: %w", err)
	}
	if err := json.Unmarshal(text, &p); err != nil {
		// The parser's error could repeat a part of the key.
		return Profile{}, fmt.Errorf("read the profile: %s is not valid; remove it and run fencepost up again", path)
	}
	return p, nil
}

// Load returns the profile with what the environment overrides. A URL of
// the environment does not get the key of the profile unless it is the
// profile's own, so that no key goes to a stranger.
func Load(getenv func(string) string) (Profile, error) {
	p := Profile{URL: getenv(client.EnvURL), Key: getenv(client.EnvKey)}
	if p.URL != "" && p.Key != "" {
		return p, nil
	}
	path, err := Path(getenv)
	if err != nil {
		return p, err
	}
	stored, err := Read(path)
	if err != nil && (!errors.Is(err, ErrNone) || p.URL == "") {
		return p, err
	}
	if p.URL == "" {
		p.URL = stored.URL
	}
	if p.Key == "" {
		p.Key = stored.KeyFor(p.URL)
	}
	if p.Key == "" {
		return p, fmt.Errorf("no key is known for %s; set %s", p.URL, client.EnvKey)
	}
	return p, nil
}

// Save writes the profile so that at no time anybody but its owner can
// read it, and so that a reader finds the old one or the new one, whole.
func Save(path string, p Profile) (err error) {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return fmt.Errorf("save the profile: %w", err)
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("save the profile: %w", err)
	}
	file, err := os.CreateTemp(dir, ".profile-*") // mode 0600
	if err != nil {
		return fmt.Errorf("save the profile: %w", err)
	}
	_, err = file.Write(append(text, '\n'))
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("save the profile: %w", errors.Join(err, os.Remove(file.Name())))
	}
	return nil
}
