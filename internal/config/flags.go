package config

import (
	"reflect"

	"github.com/spf13/pflag"
)

// Flags registers one flag for each key, as in --relaunch.attempts=3, and one
// for each key inside an inline table, as in --relaunch.backoff.max=10m.
func Flags(fs *pflag.FlagSet) {
	c := Default()
	for _, f := range keys(&c) {
		register(fs, f)
		for _, m := range f.members() {
			register(fs, m)
		}
	}
}

func register(fs *pflag.FlagSet, f field) {
	flag := fs.VarPF(&setFlag{kind: kindOf(f.Value.Type())}, f.Key, "", f.about())
	if f.Value.Kind() == reflect.Bool {
		flag.NoOptDefVal = "true"
	}
	if !f.Value.IsZero() {
		flag.DefValue = flagText(f)
	}
}

// SetsFrom returns what was given on the command line, for Options.Sets. A key
// inside an inline table comes after the table.
func SetsFrom(fs *pflag.FlagSet) []Set {
	var sets []Set
	fs.VisitAll(func(flag *pflag.Flag) { // in the order of names
		if value, ok := flag.Value.(*setFlag); ok && flag.Changed {
			sets = append(sets, Set{Key: flag.Name, Value: value.text})
		}
	})
	return sets
}

// IsKey reports whether a flag stands for a key of launch.toml.
func IsKey(f *pflag.Flag) bool {
	_, ok := f.Value.(*setFlag)
	return ok
}

// setFlag keeps the text of a flag: Load reads it, with all others.
type setFlag struct{ text, kind string }

func (s *setFlag) String() string { return s.text }
func (s *setFlag) Type() string   { return s.kind }

func (s *setFlag) Set(text string) error {
	s.text = text
	return nil
}

// kindOf is the word that stands for the value in the usage text.
func kindOf(t reflect.Type) string {
	switch t.String() {
	case "time.Duration":
		return "duration"
	case "config.Size":
		return "size"
	}
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Int, reflect.Float64:
		return "number"
	case reflect.Bool:
		return "bool"
	}
	return "toml"
}

// flagText writes a value as its flag takes it.
func flagText(f field) string {
	text := f.text()
	if f.takesText() && len(text) > 1 && text[0] == '"' {
		return text[1 : len(text)-1]
	}
	return text
}
