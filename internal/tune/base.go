package tune

import (
	"os"
	"strings"

	"sglaunch/internal/config"
	"sglaunch/internal/history"
	"sglaunch/internal/sglangcmd"
)

// BaseSettings are the values that a launch.toml gives to the axes, to those of
// explicit trials and to those of excludes. A flag or variable that it does not
// give is Absent; one that cannot be read is left out, as unknown.
func (s Study) BaseSettings(base config.Config) map[string]Value {
	env := os.Environ()
	for name, value := range base.Server.Env {
		env = append(env, name+"="+value)
	}
	command := sglangcmd.Parse(base.Server.Command, env, base.Server.Directory)
	set := map[string]Value{}
	for _, axis := range s.axisNames() {
		switch {
		case axis == PatchesAxis:
			var names []string
			for _, p := range base.Patches {
				names = append(names, p.Label())
			}
			set[axis] = TextValue(history.PatchSet(names))
		case strings.HasPrefix(axis, "$"):
			set[axis] = Value{Kind: Absent}
			if v, ok := command.Getenv(axis[1:]); ok {
				set[axis] = TextValue(v)
			}
		case command.SGLang():
			set[axis] = flagValue(command, axis)
		}
	}
	return set
}

func flagValue(c sglangcmd.Command, flag string) Value {
	if v, ok := c.Value(flag); ok && !strings.HasPrefix(v, "--") {
		return TextValue(v)
	}
	if c.Has(flag) {
		return Value{Kind: Alone}
	}
	return Value{Kind: Absent}
}

// axisNames are all names that trials and excludes may set, each once.
func (s Study) axisNames() []string {
	seen := map[string]bool{}
	var names []string
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	for name := range s.Axes {
		add(name)
	}
	for _, t := range s.Trials {
		for name := range t.Set {
			add(name)
		}
	}
	for _, e := range s.Excludes {
		for name := range e.Set {
			add(name)
		}
	}
	return names
}
