package stacks

import (
	"errors"
	"slices"
	"strings"

	"sglaunch/internal/proc"
)

// kernel is what the kernel shows of the main thread: the functions in which it
// waits, to root, or the one that it sleeps in, to the same user.
func kernel(p proc.Picture) ([]Thread, error) {
	var frames []Frame
	for line := range strings.Lines(p.Stack) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), "+")
		if _, name, _ = strings.Cut(name, "] "); name != "" {
			frames = append(frames, Frame{Func: name})
		}
	}
	if slices.ContainsFunc(frames, func(f Frame) bool { return f.Func == "do_exit" }) {
		return nil, errors.New("it is ending") // where it gives its memory back says nothing of why
	}
	if len(frames) == 0 && p.Wchan != "" {
		frames = []Frame{{Func: p.Wchan}}
	}
	if len(frames) == 0 || runs(frames[0].Func) {
		return nil, errors.New("the kernel shows no place: it runs, or it may not be looked at")
	}
	return []Thread{{Frames: frames}}, nil
}

// runs tells a process that is on its way back to its program.
func runs(innermost string) bool {
	return strings.HasPrefix(innermost, "irqentry_exit") || strings.HasPrefix(innermost, "exit_to_user_mode")
}
