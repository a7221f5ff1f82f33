package exectarget

import (
	"encoding/json"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/fencepost/fencepost/core"
)

// The limits of a payload's parts, below what systems allow for one argument.
// core.MaxPayloadBytes bounds the whole and with it stdin.
const (
	maxCommandBytes = 64 << 10
	maxEnvBytes     = 64 << 10
	maxPathBytes    = 4 << 10
	maxNameBytes    = 64
)

const defaultShell = "/bin/sh"

// job is a payload that was found to be right.
type job struct {
	command, dir, stdin, shell, user string
	env                              map[string]string
}

func parse(payload json.RawMessage) (job, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(payload, &fields); err != nil || fields == nil {
		return job{}, core.Invalid("", `must be an object such as {"command": "date"}`)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch name {
		case "command", "env", "dir", "stdin", "shell", "user":
		default:
			return job{}, core.Invalid(strings.ToValidUTF8(name[:min(len(name), maxNameBytes)], ""), "is not a field here; there are command, env, dir, stdin, shell and user")
		}
	}
	j := job{shell: defaultShell}
	for _, f := range []struct {
		name string
		to   *string
	}{{"command", &j.command}, {"dir", &j.dir}, {"stdin", &j.stdin}, {"shell", &j.shell}, {"user", &j.user}} {
		if err := parseText(f.name, fields[f.name], f.to); err != nil {
			return job{}, err
		}
	}
	if err := checkTexts(j); err != nil {
		return job{}, err
	}
	env, err := parseEnv(fields["env"])
	j.env = env
	return j, err
}

// parseText leaves to as it is when the field is absent or null.
func parseText(field string, raw json.RawMessage, to *string) error {
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, to); err != nil {
		return core.Invalid(field, "must be a string")
	}
	if strings.Contains(*to, "\x00") {
		return core.Invalid(field, "holds a NUL byte")
	}
	return nil
}

var userName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,30}\$?$`)

func checkTexts(j job) error {
	switch {
	case strings.TrimSpace(j.command) == "":
		return core.Invalid("command", "is required")
	case len(j.command) > maxCommandBytes:
		return core.Invalid("command", "is longer than %d bytes; put it into a script", maxCommandBytes)
	case j.dir != "" && !path.IsAbs(j.dir), len(j.dir) > maxPathBytes:
		return core.Invalid("dir", "must be an absolute path of at most %d bytes", maxPathBytes)
	case j.user != "" && !userName.MatchString(j.user):
		return core.Invalid("user", "is not the name of a user")
	case !path.IsAbs(j.shell), len(j.shell) > maxPathBytes:
		return core.Invalid("shell", "must be an absolute path of at most %d bytes", maxPathBytes)
	}
	return nil
}

func parseEnv(raw json.RawMessage) (map[string]string, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(raw, &values); err != nil {
		return nil, core.Invalid("env", "must be an object of strings")
	}
	env, size := make(map[string]string, len(values)), 0
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !isEnvName(name) {
			return nil, core.Invalid("env", "has a name that is not of letters, digits and underscores, at most %d", maxNameBytes)
		}
		field := "env." + name
		if strings.HasPrefix(name, "FENCEPOST_") {
			return nil, core.Invalid(field, "is set by Fencepost; leave it out")
		}
		var value string
		if string(values[name]) == "null" {
			return nil, core.Invalid(field, "must be a string")
		}
		if err := parseText(field, values[name], &value); err != nil {
			return nil, err
		}
		env[name] = value
		if size += len(name) + len(value); size > maxEnvBytes {
			return nil, core.Invalid("env", "is longer than %d bytes", maxEnvBytes)
		}
	}
	return env, nil
}

func isEnvName(name string) bool {
	if name == "" || len(name) > maxNameBytes || '0' <= name[0] && name[0] <= '9' {
		return false
	}
	for _, r := range name {
		if r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return false
		}
	}
	return true
}
