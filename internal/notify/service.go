package notify

import (
	"os"
	"slices"
	"strings"
)

// Wanted reports whether a service manager listens.
func Wanted() bool { return os.Getenv("NOTIFY_SOCKET") != "" }

// toTheService are the variables by which a service manager speaks to its service.
var toTheService = []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"}

// WithoutService returns a list of NAME=value without what speaks to sglaunch as a
// service: a server, a hook or a trial that answered in its place would end it. env
// stays as it is.
func WithoutService(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.Contains(toTheService, name)
	})
}
