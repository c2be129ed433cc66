package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sglaunch/internal/visible"
)

// Environ is the environment of the server: the inherited one, then the
// variables of env_file, then those of env. Each name appears once.
func (c Config) Environ(inherited []string) ([]string, error) {
	s := c.Server
	merged := map[string]string{}
	for _, pair := range inherited {
		if name, value, ok := strings.Cut(pair, "="); ok {
			merged[name] = value
		}
	}
	if s.EnvFile != "" {
		file, problems := parseEnv(s.EnvFile, c.Files[s.EnvFile])
		if err := problems.orNil(); err != nil {
			return nil, err
		}
		maps.Copy(merged, file)
	}
	maps.Copy(merged, s.Env)
	environ := make([]string, 0, len(merged))
	for _, name := range slices.Sorted(maps.Keys(merged)) {
		environ = append(environ, name+"="+merged[name])
	}
	return environ, nil
}

// parseEnv reads NAME=value lines, as systemd and docker do: blank lines and
// lines that begin with # are skipped, a leading "export " is dropped, and a
// value may stand in quotes. In double quotes \n, \t, \", \\ and \$ mean what
// they do in a shell; in single quotes nothing is special. Nothing is expanded.
func parseEnv(file string, content []byte) (map[string]string, Errors) {
	env := map[string]string{}
	var problems Errors
	for i, line := range strings.Split(string(content), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		line = strings.TrimSpace(strings.TrimPrefix(line, "export "))
		name, text, ok := strings.Cut(line, "=")
		value, problem := envValue(text)
		switch {
		case !ok:
			problem = "it must be NAME=value"
		case !isVariable(name):
			problem = fmt.Sprintf("%q is no name of a variable", visible.Clip(name, mostShown))
		case strings.ContainsRune(text, 0):
			problem = "it holds a NUL byte"
		}
		if problem != "" {
			problems = append(problems, &Error{File: file, Line: i + 1, Problem: problem})
			continue
		}
		env[name] = value
	}
	return env, problems
}

// envValue takes the quotes off a value. The value itself is never in the
// problem: it may be a secret.
func envValue(text string) (value, problem string) {
	text = strings.TrimSpace(text)
	if text == "" || text[0] != '"' && text[0] != '\'' {
		return text, ""
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == text[0]:
			if rest := strings.TrimSpace(text[i+1:]); rest != "" && rest[0] != '#' {
				return "", "there is text after the closing quote"
			}
			return b.String(), ""
		case c == '\\' && text[0] == '"' && i+1 < len(text):
			i++
			b.WriteString(unescape(text[i]))
		default:
			b.WriteByte(c)
		}
	}
	return "", "a quote is never closed"
}

func unescape(c byte) string {
	switch c {
	case 'n':
		return "\n"
	case 't':
		return "\t"
	case '"', '\\', '$', '`':
		return string(c)
	}
	return `\` + string(c)
}

func isVariable(name string) bool {
	for i, r := range name {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}
