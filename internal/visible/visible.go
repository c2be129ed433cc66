// Package visible makes what others wrote harmless to whoever reads it on a
// terminal: a server's words, a relay's, a command line's. Documents for programs
// keep the text as it is; their form escapes it.
package visible

import (
	"strings"
	"unicode"
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
