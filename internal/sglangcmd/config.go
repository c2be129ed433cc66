package sglangcmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// maxConfig bounds a --config file.
const maxConfig = 1 << 20

// withConfig puts the flags of a --config file before the command line's own,
// as SGLang does, so that the command line wins.
func (p *parser) withConfig(args []string) []string {
	path, ok := Command{Args: args}.Value("--config")
	if !ok {
		return args
	}
	text, err := readBounded(p.abs(path), maxConfig)
	if err != nil {
		p.note(fmt.Sprintf("cannot read the flags of --config: %v", err))
		return args
	}
	var settings yaml.MapSlice
	if err := yaml.Unmarshal(text, &settings); err != nil {
		p.note(fmt.Sprintf("cannot read the flags of --config %q: %s", path, firstLine(err)))
		return args
	}
	var flags []string
	for _, item := range settings {
		flags = append(flags, flag(fmt.Sprint(item.Key), item.Value)...)
	}
	return append(flags, args...)
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// flag turns one setting into the words of a command line. A false one is left
// out: it is the default of every such flag.
func flag(key string, value any) []string {
	name := "--" + strings.ReplaceAll(strings.TrimLeft(key, "-"), "_", "-")
	switch v := value.(type) {
	case nil:
		return nil
	case bool:
		if !v {
			return nil
		}
		return []string{name}
	case []any:
		words := []string{name}
		for _, item := range v {
			words = append(words, fmt.Sprint(item))
		}
		return words
	}
	return slices.Clip([]string{name, fmt.Sprint(value)})
}
