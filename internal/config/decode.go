package config

import (
	"encoding"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// decoder moves a parsed document into typed fields. It goes on after an
// error, so that a person sees all of them at once.
type decoder struct {
	*loader        // takes the errors
	base    string // folder that relative paths start from
}

// table fills a struct from a table.
func (d *decoder) table(dst reflect.Value, value any, key string) {
	pairs, ok := value.(map[string]any)
	if !ok {
		d.wrongType(dst, value, key)
		return
	}
	known := map[string]reflect.StructField{}
	for _, f := range tomlFields(dst.Type()) {
		known[tomlName(f)] = f
	}
	for _, name := range sortedKeys(pairs) {
		path := join(key, name)
		f, ok := known[name]
		if !ok {
			d.unknown(path, dst.Type())
			continue
		}
		d.into(dst.FieldByIndex(f.Index), pairs[name], path, f.Tag)
	}
}

// into sets one value, whatever its type.
func (d *decoder) into(dst reflect.Value, value any, key string, tag reflect.StructTag) {
	switch p := dst.Addr().Interface().(type) {
	case *time.Duration, encoding.TextUnmarshaler:
		d.text(p, dst, value, key)
		return
	case *Devices:
		d.devices(p, value, key)
		return
	case toml.Unmarshaler:
		if err := p.UnmarshalTOML(value); err != nil {
			d.fail(key, value, cause(err))
		}
		return
	}
	switch dst.Kind() {
	case reflect.Struct:
		d.table(dst, value, key)
	case reflect.Map:
		d.mapping(dst, value, key)
	case reflect.Slice:
		d.list(dst, value, key, tag)
	case reflect.String:
		d.str(dst, value, key, tag)
	case reflect.Pointer:
		fresh := reflect.New(dst.Type().Elem())
		d.into(fresh.Elem(), value, key, tag)
		dst.Set(fresh)
	default:
		d.scalar(dst, value, key)
	}
}

// text sets what is written as text and means something else.
func (d *decoder) text(p any, dst reflect.Value, value any, key string) {
	text, ok := value.(string)
	if !ok {
		d.wrongType(dst, value, key)
		return
	}
	switch p := p.(type) {
	case *time.Duration:
		parsed, err := time.ParseDuration(text)
		if err != nil {
			d.wrongType(dst, value, key)
			return
		}
		*p = parsed
	case encoding.TextUnmarshaler:
		if err := p.UnmarshalText([]byte(text)); err != nil {
			d.fail(key, value, cause(err))
		}
	}
}

func (d *decoder) devices(p *Devices, value any, key string) {
	switch value := value.(type) {
	case string:
		if value == "auto" {
			*p = Devices{}
			return
		}
	case []any:
		if len(value) > 0 {
			d.into(reflect.ValueOf(&p.UUIDs).Elem(), value, key, "")
			return
		}
	}
	d.wrongType(reflect.ValueOf(p).Elem(), value, key)
}

// mapping replaces a map; its keys may be any text, or a type that reads text.
func (d *decoder) mapping(dst reflect.Value, value any, key string) {
	pairs, ok := value.(map[string]any)
	if !ok {
		d.wrongType(dst, value, key)
		return
	}
	fresh := reflect.MakeMapWithSize(dst.Type(), len(pairs))
	for _, name := range sortedKeys(pairs) {
		path := join(key, name)
		k, v := reflect.New(dst.Type().Key()), reflect.New(dst.Type().Elem())
		if err := setName(k, name); err != nil {
			d.fail(path, nil, cause(err))
			continue
		}
		d.into(v.Elem(), pairs[name], path, "")
		fresh.SetMapIndex(k.Elem(), v.Elem())
	}
	dst.Set(fresh)
}

// setName sets what p points to, the key of a map, to a name in a table.
func setName(p reflect.Value, name string) error {
	if u, ok := p.Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(name))
	}
	p.Elem().SetString(name)
	return nil
}

func (d *decoder) list(dst reflect.Value, value any, key string, tag reflect.StructTag) {
	items, ok := value.([]any)
	if !ok {
		d.wrongType(dst, value, key)
		return
	}
	fresh := reflect.MakeSlice(dst.Type(), len(items), len(items))
	for i, item := range items {
		itemTag := reflect.StructTag("")
		if i == 0 && tag.Get("path") == "argv" {
			itemTag = `path:"program"`
		}
		d.into(fresh.Index(i), item, element(key, i), itemTag)
	}
	dst.Set(fresh)
}

func (d *decoder) str(dst reflect.Value, value any, key string, tag reflect.StructTag) {
	text, ok := value.(string)
	if !ok {
		d.wrongType(dst, value, key)
		return
	}
	if strings.ContainsRune(text, 0) {
		d.fail(key, value, "a NUL byte cannot be passed on to a process")
		return
	}
	dst.SetString(d.resolve(text, pathKind(key, tag)))
}

// resolve makes a path absolute. A program without a slash is looked up in
// PATH, a rule family without a slash is a built-in one.
func (d *decoder) resolve(text, kind string) string {
	switch kind {
	case "":
		return text
	case "program":
		if !strings.Contains(text, "/") {
			return text
		}
	case "rules":
		if !isRulesFile(text) {
			return text
		}
	}
	if text == "" || filepath.IsAbs(text) {
		return text
	}
	return filepath.Join(d.base, text)
}

func (d *decoder) scalar(dst reflect.Value, value any, key string) {
	ok := false
	switch value := value.(type) {
	case bool:
		if ok = dst.Kind() == reflect.Bool; ok {
			dst.SetBool(value)
		}
	case int64:
		switch {
		case dst.CanInt() && !dst.OverflowInt(value):
			dst.SetInt(value)
			ok = true
		case dst.CanFloat():
			dst.SetFloat(float64(value))
			ok = true
		}
	case float64:
		if ok = dst.CanFloat() && !math.IsNaN(value) && !math.IsInf(value, 0); ok {
			dst.SetFloat(value)
		}
	}
	if !ok {
		d.wrongType(dst, value, key)
	}
}

func (d *decoder) wrongType(dst reflect.Value, value any, key string) {
	d.fail(key, value, "it takes "+takes(dst.Type()))
}

// takes says in words what values a type takes.
func takes(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return `a duration as text, as in "90s", "15m" or "4h"`
	case reflect.TypeFor[Size]():
		return `a size as text, as in "512MiB" or "1GiB"`
	case reflect.TypeFor[Devices]():
		return `"auto" or a list of GPU UUIDs`
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Int32:
		return "a whole number"
	case reflect.Float64:
		return "a finite number"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Struct {
			return "tables, as in [[...]] or [{ ... }]"
		}
		return "a list of " + plural(t.Elem())
	case reflect.Map, reflect.Struct:
		return "a table, as in { name = value }"
	case reflect.Pointer:
		return takes(t.Elem())
	}
	return "text in quotes"
}

func plural(t reflect.Type) string {
	if t.Kind() == reflect.String {
		return `text, as in ["a", "b"]`
	}
	return "numbers, as in [1, 8]"
}
