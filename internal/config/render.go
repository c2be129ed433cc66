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
// version, secrets masked. Where there are none, loading it gives c again.
func (c Config) Effective() string {
	masked := c.Masked()
	var b strings.Builder
	section := ""
	for _, f := range keys(&masked) {
		if isNotYet(f.Key) {
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
	c.Server.Env = maps.Clone(c.Server.Env)
	for name, value := range c.Server.Env {
		c.Server.Env[name] = mask.Value(name, value)
	}
	c.Hooks.Webhook = mask.URL(c.Hooks.Webhook)
	for _, argv := range []*[]string{
		&c.Hooks.OnReady, &c.Hooks.OnStopping, &c.Hooks.OnFailure,
		&c.Hooks.OnRecovered, &c.Hooks.OnGaveUp, &c.Hooks.OnStuck,
	} {
		*argv = mask.Argv(*argv)
	}
	c.Fallbacks = slices.Clone(c.Fallbacks)
	return c
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
