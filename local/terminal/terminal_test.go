package terminal_test

import (
	"testing"

	"github.com/fencepost/fencepost/local/terminal"
)

func TestPrintable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain, ümläut 日本":      "plain, ümläut 日本",
		"a\tb\nc\rd":            "a b c d",
		"\x1b]0;title\x07":      "\uFFFD]0;title\uFFFD",
		"\u009b31m":             "\uFFFD31m",
		"evil\u202Egnp.exe\x00": "evil\uFFFDgnp.exe\uFFFD",
	} {
		if got := terminal.Printable(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}
