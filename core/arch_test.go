package core_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The rules of how the repository is cut, as tests: who may import whom, who
// may read the clock, and how large things may get. A rule is a function of a
// small value, so that arch_rules_test.go can show that it catches something.

const module = "github.com/fencepost/fencepost"

const (
	maxFileLines     = 399
	maxFunctionLines = 49
	maxADRLines      = 60
)

// unit is a package as the rules see it, without its tests.
type unit struct {
	path    string // below the module, such as core/plan
	doc     string
	sources []source
}

// source is a Go file, whatever its build constraints.
type source struct {
	name      string
	lines     int
	imports   []string
	clock     []string // uses of the time package's clock, as written
	functions []function
}

type function struct {
	name  string
	lines int
}

// clockNames are what the time package has to read the clock or to wait.
const clockNames = " Now Since Until Sleep After AfterFunc Tick NewTicker NewTimer "

// parseSource reads a Go file.
func parseSource(name string, text []byte) (source, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
	if err != nil {
		return source{}, err
	}
	s := source{name: name, lines: bytes.Count(text, []byte("\n"))}
	timeNames := map[string]bool{}
	for _, i := range file.Imports {
		imported, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return source{}, err
		}
		s.imports = append(s.imports, imported)
		switch {
		case imported != "time":
		case i.Name == nil:
			timeNames["time"] = true
		case i.Name.Name == ".":
			s.clock = append(s.clock, `import . "time"`)
		default:
			timeNames[i.Name.Name] = true
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			lines := set.Position(n.End()).Line - set.Position(n.Pos()).Line + 1
			s.functions = append(s.functions, function{n.Name.Name, lines})
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && timeNames[x.Name] && strings.Contains(clockNames, " "+n.Sel.Name+" ") {
				s.clock = append(s.clock, x.Name+"."+n.Sel.Name)
			}
		}
		return true
	})
	return s, nil
}

// isTestSupport reports whether a package only serves tests, as its name says.
func isTestSupport(unitPath string) bool { return strings.HasSuffix(unitPath, "test") }

// below reports whether p is dir or lies in it.
func below(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

func belowAny(p string, dirs ...string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return below(p, dir) })
}

// part returns the first n elements of a path.
func part(p string, n int) string {
	all := strings.Split(p, "/")
	return strings.Join(all[:min(n, len(all))], "/")
}

// sdks are the modules that each adapter is an adapter for. A new one is
// argued for in core/adr.
func sdks(adapter string) []string {
	const pgx = "github.com/jackc/pgx/v5"
	return map[string][]string{
		"infra/database": {pgx, "github.com/pressly/goose/v3", "github.com/cockroachdb/cockroach-go/v2"},
		"infra/embedded": {pgx},
		"infra/sqs":      {"github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go"},
		// Metrics are written in one form, with the library of those who read it.
		"infra/telemetry": {"github.com/prometheus/client_golang"},
	}[adapter]
}

// importRule says who may import whom: data flows through core's interfaces,
// so core knows no adapter, an adapter no other one, a function no other one.
func importRule(u unit) []string {
	var wrong []string
	for _, s := range u.sources {
		for _, i := range s.imports {
			if !mayImport(u.path, i) {
				wrong = append(wrong, fmt.Sprintf("%s/%s imports %s", u.path, s.name, i))
			}
		}
	}
	return wrong
}

func mayImport(from, imported string) bool {
	if inside, ok := strings.CutPrefix(imported, module+"/"); ok {
		return mayImportInside(from, inside)
	}
	switch {
	case !strings.Contains(part(imported, 1), "."): // the standard library
		return true
	case belowAny(imported, "github.com/google/uuid", "golang.org/x/sync"):
		return true
	case below(from, "core"):
		return below(from, "core/api") && below(imported, "github.com/danielgtaylor/huma/v2") ||
			isTestSupport(from) && below(imported, "github.com/google/go-cmp")
	case below(from, "infra"):
		return belowAny(imported, sdks(part(from, 2))...)
	default:
		return true
	}
}

func mayImportInside(from, imported string) bool {
	switch part(from, 1) {
	case "core":
		return below(imported, "core")
	case "infra":
		return belowAny(imported, "core", "infra/clock", part(from, 2)) ||
			from == "infra/database/dbtest" && imported == "infra/embedded"
	case "functions":
		return belowAny(imported, "core", "infra", part(from, 2))
	default:
		return from == "local" || below(from, "local")
	}
}

// clockRule keeps the clock in one place, so that everything else can be tested
// with a clock of the test's own.
func clockRule(u unit) []string {
	if u.path == "infra/clock" {
		return nil
	}
	var wrong []string
	for _, s := range u.sources {
		for _, use := range s.clock {
			wrong = append(wrong, fmt.Sprintf("%s/%s uses %s", u.path, s.name, use))
		}
	}
	return wrong
}

// docRule demands that each package says what it is for.
func docRule(u unit) []string {
	if len(u.sources) > 0 && u.doc == "" {
		return []string{u.path + " has no package comment"}
	}
	return nil
}

// sizeRule keeps files and functions readable in one go.
func sizeRule(u unit) []string {
	var wrong []string
	for _, s := range u.sources {
		if s.lines > maxFileLines {
			wrong = append(wrong, fmt.Sprintf("%s/%s has %d lines", u.path, s.name, s.lines))
		}
		for _, f := range s.functions {
			if f.lines > maxFunctionLines {
				wrong = append(wrong, fmt.Sprintf("%s/%s: %s has %d lines", u.path, s.name, f.name, f.lines))
			}
		}
	}
	return wrong
}

// topRule says what may lie at the top of the repository.
func topRule(files []string) []string {
	const allowed = " functions core infra terraform local go.mod go.sum Makefile README.md LICENSE NOTICE SECURITY.md CHANGELOG.md CONTRIBUTING.md "
	var wrong []string
	for _, f := range files {
		top := part(f, 1)
		if !strings.HasPrefix(top, ".") && !strings.Contains(allowed, " "+top+" ") && !slices.Contains(wrong, top) {
			wrong = append(wrong, top)
		}
	}
	return wrong
}

// foreign are texts that tie a file to one machine or to one package registry.
// They are in pieces here, so that this file has none of them.
func foreign() []string {
	all := []string{"/work" + "/", "../" + "shared"}
	for _, host := range []string{
		"proxy golang org", "sum golang org", "registry npmjs org", "npmjs com", "registry yarnpkg com", "pypi org", "pythonhosted org",
		"crates io", "rubygems org", "repo1 maven org", "repo maven apache org", "nuget org",
	} {
		all = append(all, strings.ReplaceAll(host, " ", "."))
	}
	return all
}

// textRule refuses text that holds only on somebody's machine.
func textRule(name string, text []byte) []string {
	if bytes.IndexByte(text, 0) >= 0 { // not text
		return nil
	}
	var wrong []string
	for _, f := range foreign() {
		if bytes.Contains(text, []byte(f)) {
			wrong = append(wrong, fmt.Sprintf("%s has %q in it", name, f))
		}
	}
	return wrong
}

// adrRule keeps decisions short and in order.
func adrRule(name, text string, number int) []string {
	var wrong []string
	if !strings.HasPrefix(name, fmt.Sprintf("%04d-", number)) || path.Ext(name) != ".md" {
		wrong = append(wrong, fmt.Sprintf("%s is not number %04d", name, number))
	}
	if n := strings.Count(text, "\n"); n > maxADRLines {
		wrong = append(wrong, fmt.Sprintf("%s has %d lines", name, n))
	}
	for _, heading := range []string{"\nStatus: ", "\n## Context\n", "\n## Decision\n", "\n## Rejected\n"} {
		if !strings.Contains(text, heading) {
			wrong = append(wrong, fmt.Sprintf("%s lacks %q", name, strings.TrimSpace(heading)))
		}
	}
	return wrong
}

// root is the repository, seen from this package.
const root = ".."

// units reads all packages of the repository.
func units(t *testing.T) []unit {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Dir,Doc,GoFiles,CgoFiles,IgnoredGoFiles", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("list packages: %v", err)
	}
	var all []unit
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Dir, Doc              string
			GoFiles, CgoFiles, IgnoredGoFiles []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("decode packages: %v", err)
		}
		u := unit{path: strings.TrimPrefix(p.ImportPath, module+"/"), doc: p.Doc}
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.IgnoredGoFiles) {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			s, err := parseSource(name, text)
			if err != nil {
				t.Fatal(err)
			}
			u.sources = append(u.sources, s)
		}
		all = append(all, u)
	}
}

// files returns the paths of the repository's files: the tracked ones, or all
// in a copy without git.
func files(t *testing.T) []string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(root, ".git")); err == nil {
		// The owner of the checkout matters to what git runs, which is nothing.
		cmd := exec.CommandContext(t.Context(), "git", "-c", "safe.directory=*", "ls-files", "-z")
		cmd.Dir = root
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("list files: %v", err)
		}
		return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	}
	var all []string
	err := fs.WalkDir(os.DirFS(root), ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (p == "bin" || p == "dist"):
			return fs.SkipDir
		case !d.IsDir():
			all = append(all, p)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("list files: %v", err)
	}
	return all
}

func TestPackages(t *testing.T) {
	t.Parallel()
	all := units(t)
	if len(all) < 20 {
		t.Fatalf("found only %d packages", len(all))
	}
	for name, rule := range map[string]func(unit) []string{
		"imports": importRule, "clock": clockRule, "comments": docRule, "sizes": sizeRule,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, u := range all {
				for _, wrong := range rule(u) {
					t.Error(wrong)
				}
			}
		})
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	all := files(t)
	if len(all) < 100 {
		t.Fatalf("found only %d files", len(all))
	}
	for _, wrong := range topRule(all) {
		t.Errorf("%s does not belong at the top", wrong)
	}
	decisions := 0
	for _, f := range all {
		text, err := os.ReadFile(filepath.Join(root, f))
		if errors.Is(err, fs.ErrNotExist) { // deleted, not yet committed
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range textRule(f, text) {
			t.Error(wrong)
		}
		if path.Dir(f) == "core/adr" {
			decisions++
			for _, wrong := range adrRule(path.Base(f), string(text), decisions) {
				t.Error(wrong)
			}
		}
	}
}
