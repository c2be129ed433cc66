package conduct

import (
	"strings"
	"time"

	"sglaunch/internal/mask"
	"sglaunch/internal/serve"
)

// round is a duration as a person reads it.
func round(d time.Duration) time.Duration {
	switch {
	case d > 10*time.Minute:
		return d.Round(time.Minute)
	case d > 10*time.Second:
		return d.Round(time.Second)
	}
	return d.Round(100 * time.Millisecond)
}

// lastLine is the last line of a text that says anything, masked, without the
// name of the program that said it.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimPrefix(serve.Plain(mask.String(lines[len(lines)-1])), "sglaunch: ")
}
