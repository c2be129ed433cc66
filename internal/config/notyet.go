package config

import (
	"slices"
	"strings"
)

// notYet lists what launch.toml can say and this version cannot do. Such a key
// or value is refused, never ignored. A feature that arrives takes its line
// out of here and adds its key to launch.toml.example (go test -update).
var notYet = []struct {
	Key    string   // and everything below it
	Values []string // only these values of it; none: the whole key
}{
	{Key: "listen.http"},
}

const notInThisVersion = "not in this version"

// isNotYet reports whether no value of the key has an effect in this version.
func isNotYet(key string) bool {
	key = withoutRows(key)
	for _, m := range notYet {
		if m.Values == nil && (key == m.Key || strings.HasPrefix(key, m.Key+".")) {
			return true
		}
	}
	return false
}

// isNotYetValue reports whether this value of the key has none.
func isNotYetValue(key, value string) bool {
	key = withoutRows(key)
	for _, m := range notYet {
		if m.Key == key && slices.Contains(m.Values, value) {
			return true
		}
	}
	return false
}

// withoutRows turns "patch[2].method" into "patch.method".
func withoutRows(key string) string {
	for {
		before, rest, ok := strings.Cut(key, "[")
		_, after, closed := strings.Cut(rest, "]")
		if !ok || !closed {
			return key
		}
		key = before + after
	}
}
