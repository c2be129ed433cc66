package config

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tomlText writes a value on one line, as launch.toml would hold it. It takes
// the typed values of Config and the plain ones of a parsed document alike.
func tomlText(v reflect.Value) string {
	if !v.IsValid() {
		return `""`
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		return quote(formatDuration(x))
	case Devices:
		if x.Auto() {
			return quote("auto")
		}
		return tomlText(reflect.ValueOf(x.UUIDs))
	case time.Time:
		return x.Format(time.RFC3339Nano)
	case encoding.TextMarshaler:
		if text, err := x.MarshalText(); err == nil {
			return quote(string(text))
		}
	}
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		return tomlText(v.Elem())
	case reflect.String:
		return quote(v.String())
	case reflect.Float32, reflect.Float64:
		return floatText(v.Float())
	case reflect.Slice, reflect.Array:
		return listText(v)
	case reflect.Map:
		return mapText(v)
	case reflect.Struct:
		return structText(v)
	}
	return fmt.Sprint(v.Interface())
}

// text writes the value of a key. An inline table with defaults shows all of
// its keys, as one that is left out does not mean zero.
func (f field) text() string {
	members := f.members()
	if members == nil {
		return tomlText(f.Value)
	}
	pairs := make([]string, len(members))
	for i, m := range members {
		_, name := split(m.Key)
		pairs[i] = name + " = " + tomlText(m.Value)
	}
	return inlineTable(pairs)
}

func listText(v reflect.Value) string {
	items := make([]string, v.Len())
	for i := range items {
		items[i] = tomlText(v.Index(i))
	}
	return "[" + strings.Join(items, ", ") + "]"
}

func mapText(v reflect.Value) string {
	var pairs []string
	for _, key := range v.MapKeys() {
		name := tomlText(key) // in quotes
		if bare := name[1 : len(name)-1]; isBare(bare) {
			name = bare
		}
		pairs = append(pairs, name+" = "+tomlText(v.MapIndex(key)))
	}
	slices.Sort(pairs)
	return inlineTable(pairs)
}

// structText leaves out what is zero: absent means the same.
func structText(v reflect.Value) string {
	var pairs []string
	for _, f := range tomlFields(v.Type()) {
		if value := v.FieldByIndex(f.Index); !value.IsZero() {
			pairs = append(pairs, tomlName(f)+" = "+tomlText(value))
		}
	}
	return inlineTable(pairs)
}

func inlineTable(pairs []string) string {
	if len(pairs) == 0 {
		return "{}"
	}
	return "{ " + strings.Join(pairs, ", ") + " }"
}

func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// quote writes a TOML basic string. Bytes that are no UTF-8, which TOML cannot
// hold, become U+FFFD.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// mostShown keeps error texts readable, in bytes.
const mostShown = 80
