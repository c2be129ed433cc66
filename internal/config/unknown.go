package config

import (
	"reflect"
	"strings"

	"github.com/agext/levenshtein"
)

const noSuchKey = "there is no such key"

// unknownHint names what a person may have meant by a key that does not exist:
// a sibling spelt alike, the same key in another table, or all siblings.
func unknownHint(key string, table reflect.Type, elsewhere func(string) string) string {
	within, name := split(key)
	var siblings []string
	for _, f := range tomlFields(table) {
		siblings = append(siblings, tomlName(f))
	}
	if near := Nearest(name, siblings); near != "" {
		return "did you mean " + join(within, near) + "?"
	}
	inList := strings.HasSuffix(within, "]") // of whose keys there is one each: none strays there
	if other := elsewhere(name); other != "" && !inList {
		return "did you mean " + other + "?"
	}
	if within == "" {
		return "known here are " + strings.Join(siblings, ", ")
	}
	return "known in " + within + " are " + strings.Join(siblings, ", ")
}

// unknownFlagHint is unknownHint for a key given by its whole path.
func unknownFlagHint(key string) string {
	c := Default()
	var known []string
	for _, f := range keys(&c) {
		known = append(known, f.Key)
	}
	if near := Nearest(key, known); near != "" {
		return "did you mean --" + near + "?"
	}
	return ""
}

// Nearest is the candidate that a slip of the finger turns into name, or "".
func Nearest(name string, candidates []string) string {
	best, bestDistance := "", 1+max(1, len(name)/3)
	for _, c := range candidates {
		d := levenshtein.Distance(strings.ToLower(name), c, nil)
		if d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// keyElsewhere finds a key of exactly this name in another section.
func keyElsewhere(name string) string {
	c := Default()
	for _, f := range keys(&c) {
		for _, k := range append(f.members(), f) {
			if _, last := split(k.Key); last == name {
				return k.Key
			}
		}
	}
	return ""
}

// split takes the last step off a path of bare keys.
func split(key string) (table, name string) {
	i := strings.LastIndexByte(key, '.')
	return key[:max(i, 0)], key[i+1:]
}
