// Package visible makes what others wrote harmless to whoever reads it on a
// terminal: a server's words, a relay's, a command line's. Documents for programs
// keep the text as it is; their form escapes it.
package visible

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line makes one line of a text, of what can be seen only. Nothing is left that
// moves the cursor, rings, colours, hides or turns the text around (controls, also
// those of eight bits, and the invisible marks of Unicode), nor ends the line:
// blanks of every kind become a space, and what is no UTF-8 a question mark.
func Line(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

// Lines does the same to each line of a text, whose ends at "\n" stay.
func Lines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Line(line)
	}
	return strings.Join(lines, "\n")
}

// Clip shortens a text that is longer than most bytes to its beginning, never in the
// middle of a character, and says so with three dots.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// Source shows a line of source to somebody who decides about it: what cannot be
// seen is not left out but written as its escape, so that nothing of it is missed.
// Tabs stay.
func Source(line string) string {
	var b strings.Builder
	for len(line) > 0 {
		r, size := utf8.DecodeRuneInString(line)
		switch quoted := strconv.QuoteRune(r); {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, line[0])
		case r == '\t' || unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		line = line[size:]
	}
	return b.String()
}
