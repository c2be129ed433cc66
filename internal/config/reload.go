package config

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
)

// When says when a changed key takes effect in a launch that runs.
type When string

// The values of When, as the tag "reload" of a key or its section has them.
const (
	Now         When = "now"
	NextAttempt When = "attempt" // the server must start anew: sglaunch restart
	NextLaunch  When = ""        // stop it and run it again
)

// Change is a key whose value is another one than before.
type Change struct {
	Key  string
	When When
}

// Changes lists what differs between two configurations, in the order of
// launch.toml.
func Changes(was, is Config) []Change {
	var all []Change
	before := keys(&was)
	for i, f := range keys(&is) {
		same := bytes.Equal(was.Files[contentOf(before[i])], is.Files[contentOf(f)])
		if !same || !reflect.DeepEqual(before[i].Value.Interface(), f.Value.Interface()) {
			all = append(all, Change{f.Key, f.when()})
		}
	}
	return all
}

// contentOf is the path of the file whose content belongs to the value of a key; "" =
// there is none.
func contentOf(f field) string {
	if f.Key == "server.env_file" || f.Key == "phases.rules" {
		return f.Value.String()
	}
	return ""
}

// when reads the tag of the key, else that of its section.
func (f field) when() When {
	if tag, ok := f.Tag.Lookup("reload"); ok {
		return When(tag)
	}
	sections := tomlFields(reflect.TypeFor[Config]())
	i := slices.IndexFunc(sections, func(s reflect.StructField) bool { return tomlName(s) == parent(f.Key) })
	if i < 0 {
		return NextLaunch
	}
	return When(sections[i].Tag.Get("reload"))
}

// Going returns is with the values that was has for every key that does not
// take effect before the next launch.
func Going(was, is Config) Config {
	kept := keys(&was)
	is.Files = maps.Clone(is.Files)
	for i, f := range keys(&is) {
		if f.when() != NextLaunch {
			continue
		}
		f.Value.Set(kept[i].Value)
		if path := contentOf(f); path != "" {
			is.Files[path] = was.Files[path]
		}
	}
	return is
}
