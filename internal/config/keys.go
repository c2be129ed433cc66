package config

import (
	"encoding"
	"reflect"
	"slices"
	"strings"
	"time"
)

// field is one key of launch.toml within a Config.
type field struct {
	Key   string // "relaunch.attempts"
	Value reflect.Value
	Tag   reflect.StructTag
}

// keys lists every key of the sections of c in the order of launch.toml. The
// values are addressable: to set one is to set c. Arrays of tables are one key
// each.
func keys(c *Config) []field {
	var all []field
	root := reflect.ValueOf(c).Elem()
	for _, section := range tomlFields(root.Type()) {
		v := root.FieldByIndex(section.Index)
		name := tomlName(section)
		if v.Kind() != reflect.Struct {
			all = append(all, field{name, v, section.Tag})
			continue
		}
		for _, f := range tomlFields(v.Type()) {
			all = append(all, field{join(name, tomlName(f)), v.FieldByIndex(f.Index), f.Tag})
		}
	}
	return all
}

// hooks lists the commands of [hooks].
func hooks(c *Config) []field {
	return slices.DeleteFunc(keys(c), func(f field) bool {
		table, _ := split(f.Key)
		return table != "hooks" || f.Tag.Get("path") != "argv"
	})
}

// argv is the value of a key that holds a command.
func (f field) argv() []string { return f.Value.Interface().([]string) }

// members lists the keys inside an inline table such as relaunch.backoff;
// other keys have none.
func (f field) members() []field {
	if f.Value.Kind() != reflect.Struct || f.Value.Type() == reflect.TypeFor[Devices]() {
		return nil
	}
	var all []field
	for _, m := range tomlFields(f.Value.Type()) {
		all = append(all, field{join(f.Key, tomlName(m)), f.Value.FieldByIndex(m.Index), m.Tag})
	}
	return all
}

// oneof lists the words that a key takes; none: any.
func (f field) oneof() []string {
	return strings.Fields(f.Tag.Get("oneof"))
}

// tomlFields lists the exported fields of a struct that have a TOML name.
func tomlFields(t reflect.Type) []reflect.StructField {
	var fields []reflect.StructField
	for f := range t.Fields() {
		if f.IsExported() && tomlName(f) != "" {
			fields = append(fields, f)
		}
	}
	return fields
}

func tomlName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
	return strings.Trim(name, "-")
}

// find returns the key of that path, or of that path inside an inline table.
func find(c *Config, key string) (field, bool) {
	for _, f := range keys(c) {
		for _, k := range append(f.members(), f) {
			if k.Key == key {
				return k, true
			}
		}
	}
	return field{}, false
}

// takesText reports whether the key is written as text in launch.toml.
func (f field) takesText() bool {
	switch f.Value.Addr().Interface().(type) {
	case *time.Duration, *Devices, encoding.TextUnmarshaler:
		return true
	}
	return f.Value.Kind() == reflect.String
}

// pathKind says how a relative path at key is to be read: "any", "program",
// "rules", "argv", or "" for what is no path.
func pathKind(key string, tag reflect.StructTag) string {
	switch withoutRows(key) {
	case "patch.diff", "patch.file", "patch.variant.diff", "patch.variant.file":
		return "any"
	}
	return tag.Get("path")
}

// isRulesFile tells a rules file from the name of a built-in family.
func isRulesFile(rules string) bool {
	return strings.Contains(rules, "/") || strings.HasSuffix(rules, ".toml")
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
