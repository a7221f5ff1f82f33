package database

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

// statements maps the name of each embedded file, without .sql, to its text.
type statements map[string]string

// reads reports whether the named statement changes nothing.
func (s statements) reads(name string) bool {
	for line := range strings.Lines(s[name]) {
		for _, verb := range []string{"INSERT INTO ", "UPDATE ", "DELETE FROM "} {
			if !strings.HasPrefix(line, "--") && strings.Contains(line, verb) {
				return false
			}
		}
	}
	return true
}

// loadStatements reads the embedded statements and passes each through rewrite,
// which may be nil.
func loadStatements(rewrite func(name, text string) string) (statements, error) {
	files, err := fs.Glob(sqlFiles, "sql/*.sql")
	if err != nil {
		return nil, fmt.Errorf("list statements: %w", err)
	}
	all := make(statements, len(files))
	for _, f := range files {
		text, err := sqlFiles.ReadFile(f)
		if err != nil {
			return nil, fmt.Errorf("read statement: %w", err)
		}
		name := strings.TrimSuffix(path.Base(f), ".sql")
		all[name] = string(text)
		if rewrite != nil {
			all[name] = rewrite(name, all[name])
		}
	}
	return all, nil
}
