package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"sglaunch/internal/mask"
)

// Effective writes the configuration as a launch.toml with every key of this
// version, secrets masked.
func (c Config) Effective() string { return c.Masked().Text() }

// Text writes the configuration as a launch.toml with every key of this
// version; loading it gives c again. It holds secrets where c does: it is for
// files that only their owner can read.
func (c Config) Text() string { return c.write(func(field) bool { return true }) }

// Brief is Text with those keys alone that are not at their default.
func (c Config) Brief() string {
	standard := Default()
	return c.write(func(f field) bool {
		d, _ := find(&standard, f.Key)
		return !reflect.DeepEqual(f.Value.Interface(), d.Value.Interface())
	})
}

// write renders the keys that are wanted, section by section.
func (c Config) write(wanted func(field) bool) string {
	var b strings.Builder
	section := ""
	for _, f := range keys(&c) {
		if !wanted(f) {
			continue
		}
		if rows := f.rows(); rows != nil {
			writeRows(&b, f.Key, rows)
			section = ""
			continue
		}
		table, name := split(f.Key)
		if table != section {
			section = table
			fmt.Fprintf(&b, "\n[%s]\n", section)
		}
		fmt.Fprintf(&b, "%s = %s\n", name, f.text())
	}
	return strings.TrimPrefix(b.String(), "\n")
}

// Masked is a copy of c that may be written anywhere.
func (c Config) Masked() Config {
	c.Server.Command = mask.Argv(c.Server.Command)
	c.Server.Env = values(c.Server.Env)
	c.Hooks.Webhook = mask.URL(c.Hooks.Webhook)
	for _, hook := range hooks(&c) {
		hook.Value.Set(reflect.ValueOf(mask.Argv(hook.argv())))
	}
	c.Fallbacks = slices.Clone(c.Fallbacks)
	for i, f := range c.Fallbacks {
		c.Fallbacks[i].Set, c.Fallbacks[i].Env = values(f.Set), values(f.Env)
	}
	return c
}

// values masks those of flags or variables.
func values(all map[string]string) map[string]string {
	masked := maps.Clone(all)
	for name, value := range masked {
		masked[name] = mask.Value(name, value)
	}
	return masked
}

// rows are the elements of an array of tables; nil for any other key.
func (f field) rows() []reflect.Value {
	t := f.Value.Type()
	if t.Kind() != reflect.Slice || t.Elem().Kind() != reflect.Struct {
		return nil
	}
	rows := make([]reflect.Value, f.Value.Len())
	for i := range rows {
		rows[i] = f.Value.Index(i)
	}
	return rows
}

func writeRows(b *strings.Builder, key string, rows []reflect.Value) {
	for _, row := range rows {
		fmt.Fprintf(b, "\n[[%s]]\n", key)
		for _, f := range tomlFields(row.Type()) {
			if v := row.FieldByIndex(f.Index); !v.IsZero() {
				fmt.Fprintf(b, "%s = %s\n", tomlName(f), tomlText(v))
			}
		}
	}
}
