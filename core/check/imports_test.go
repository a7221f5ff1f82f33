package check_test

import (
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// TestSharesNothing: a judge that uses the rules of the one who is judged finds nothing.
func TestSharesNothing(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name(), "_test.go") || !strings.HasSuffix(f.Name(), ".go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range parsed.Imports {
			if strings.Contains(i.Path.Value, ".") {
				t.Errorf("%s imports %s; the standard library is all that it may", f.Name(), i.Path.Value)
			}
		}
	}
}
