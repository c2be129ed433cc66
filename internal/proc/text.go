package proc

import (
	"bytes"
	"slices"
	"strings"

	"sglaunch/internal/mask"
)

const (
	commandLimit = 4 << 10   // bytes of a command line that are looked at
	environLimit = 256 << 10 // bytes of an environment that are looked at
	shownCommand = 300       // bytes of a command line that are shown
)

// Command returns the command line of a process for people: secrets masked,
// length bounded, one line. Where there is none (kernel thread, zombie, a
// process that does not answer) it is the name in brackets, as ps shows it.
func Command(p Proc) string {
	text, err := fileOf(p.PID, "cmdline", commandLimit)
	argv := strings.FieldsFunc(string(text), func(r rune) bool { return r == 0 })
	if err != nil || len(argv) == 0 {
		return "[" + p.Comm + "]"
	}
	line := strings.Join(mask.Argv(argv), " ")
	line = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, line)
	return clip(strings.TrimSpace(line), shownCommand)
}

// Environ returns the environment of a process as it was when it began its
// program, as far as that can be read. Titles wipe it: then it is empty.
func Environ(pid int) ([]string, error) {
	text, err := fileOf(pid, "environ", environLimit)
	if err != nil {
		return nil, err
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == 0 }), nil
}

// HasEnv reports whether NAME=value is in the environment of a process, as far
// as that can be read. No is not a proof: titles wipe it, exec replaces it.
func HasEnv(pid int, marker string) bool {
	env, err := Environ(pid)
	return err == nil && slices.Contains(env, marker)
}

// hasBegun reports whether a process has arguments. It has none for the moment in
// which the kernel gives it another program; nor has a kernel thread.
func hasBegun(pid int) bool {
	text, err := fileOf(pid, "cmdline", 1)
	return err == nil && len(text) > 0
}

// Condition says in words why a process may not end, or "" where its state
// letter says it all.
func Condition(p Proc) string {
	switch {
	case p.State == 'D':
		if text, err := fileOf(p.PID, "status", 8<<10); err == nil && bytes.Contains(text, []byte("CoreDumping:\t1")) {
			return "dumping core"
		}
		if text, err := fileOf(p.PID, "wchan", 128); err == nil && len(text) > 0 && string(text) != "0" {
			return "D (waits in the kernel, in " + string(text) + ")"
		}
		return "D (waits in the kernel)"
	case p.State == 'Z' && !p.Dead():
		return "Z (its first thread has ended, others live)"
	case p.State == 'Z':
		return "Z (its parent or tracer does not collect it)"
	}
	if text, err := fileOf(p.PID, "status", 8<<10); err == nil && bytes.Contains(text, []byte("CoreDumping:\t1")) {
		return "dumping core"
	}
	return string(p.State)
}
