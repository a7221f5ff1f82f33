package crontab

import "strings"

// splitInput cuts a command at its first % that is not escaped: what follows is
// its input. A backslash escapes the character after it, but only \% loses it.
// This is how cron of Debian and cronie read the command; the input they read
// differently, see input.
func splitInput(text string) (command, stdin string) {
	var b []byte
	escaped := false
	for i := range len(text) {
		c := text[i]
		switch {
		case escaped && c == '%':
			b[len(b)-1] = c
		case c == '%':
			return string(b), input(text[i+1:])
		default:
			b = append(b, c)
		}
		escaped = c == '\\' && !escaped
	}
	return string(b), ""
}

// input returns what a command reads: every % is a newline, \% is %, and the last
// line gets a newline if it has none, all as in cron, where a backslash that is
// itself escaped still escapes a %.
func input(text string) string {
	var b strings.Builder
	escaped, open := false, false
	for i := range len(text) {
		c := text[i]
		switch {
		case escaped && c != '%':
			b.WriteByte('\\')
		case !escaped && c == '%':
			c = '\n'
		}
		if escaped = c == '\\'; !escaped {
			b.WriteByte(c)
			open = c != '\n'
		}
	}
	if escaped {
		b.WriteByte('\\')
	}
	if open {
		b.WriteByte('\n')
	}
	return b.String()
}

// percents is the reverse of input for text that ends with a newline.
func percents(text string) string {
	if text == "" {
		return ""
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := range lines {
		lines[i] = escape(lines[i])
	}
	return "%" + strings.Join(lines, "%")
}

func escape(text string) string { return strings.ReplaceAll(text, "%", `\%`) }
