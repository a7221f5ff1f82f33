package core_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core"
)

func TestParseSelector(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]core.Selector{
		"":                      {},
		"a=b":                   {Equal: map[string]string{"a": "b"}},
		" a = b , c != d,e, !f": {Equal: map[string]string{"a": "b"}, Differ: []core.Label{{Key: "c", Value: "d"}}, Has: []string{"e"}, HasNot: []string{"f"}},
		"a=":                    {Equal: map[string]string{"a": ""}},
		"x/y.z_0-1=b=c":         {Equal: map[string]string{"x/y.z_0-1": "b=c"}},
		"a=b,a=b":               {Equal: map[string]string{"a": "b"}},
	} {
		got, err := core.ParseSelector(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v %s", text, err, diff)
		}
	}
	for _, text := range []string{",", "a,", "=", "=b", "!", "a!", "!a=b", "a b", "-a", "a=\x01", "ä", strings.Repeat("a", 64), strings.Repeat("a,", 40) + "a"} {
		if _, err := core.ParseSelector(text); core.CodeOf(err) != core.CodeInvalid {
			t.Errorf("%q was taken: %v", text, err)
		}
	}
}

func TestSelectorMatches(t *testing.T) {
	t.Parallel()
	labels := map[string]string{"team": "x", "env": ""}
	for text, want := range map[string]bool{
		"": true, "team=x": true, "team=y": false, "env=": true, "owner=": false, "team!=y": true, "team!=x": false, "owner!=x": true,
		"env": true, "owner": false, "!owner": true, "!env": false, "team=x,team=y": false, "team=x,env,!owner": true,
	} {
		s, err := core.ParseSelector(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Matches(labels); got != want {
			t.Errorf("%q is %t, want %t", text, got, want)
		}
	}
}
