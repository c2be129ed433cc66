package stacks

import (
	"fmt"
	"path"
	"strings"
)

// Frame is one function that a thread is in.
type Frame struct {
	Func string // as the tool names it: "Condition.wait", "ncclGroupEnd"
	File string // as short as the tool shows it; of native code its library; "" = unknown
	Line int    // 0 = unknown
}

// String is the frame as py-spy writes it.
func (f Frame) String() string {
	switch {
	case f.File == "":
		return f.Func
	case f.Line == 0:
		return fmt.Sprintf("%s (%s)", f.Func, f.File)
	}
	return fmt.Sprintf("%s (%s:%d)", f.Func, f.File, f.Line)
}

// where is the frame without what differs between two looks at one place.
func (f Frame) where() string {
	if f.File == "" {
		return f.Func
	}
	return fmt.Sprintf("%s (%s)", f.Func, path.Base(f.File))
}

// Thread is one thread of a process, the innermost frame first.
type Thread struct {
	Name   string // "MainThread"; "" where the tool does not tell
	Frames []Frame
}

// Stack is what one look at a process showed.
type Stack struct {
	Process
	Tool    string // py-spy, gdb, kernel; "" = nothing was learnt
	Threads []Thread
	Errs    []string // what each tool that was tried in vain said
}

// main is the thread that was first in the process, which is the one that works
// for SGLang.
func (s Stack) main() []Frame {
	if len(s.Threads) == 0 {
		return nil
	}
	return s.Threads[0].Frames
}

// String is the stack for the evidence: a head and a line for each frame.
func (s Stack) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "== %s, process %d", s.Rank, s.PID)
	if s.Tool != "" {
		fmt.Fprintf(&b, ", by %s", s.Tool)
	}
	b.WriteByte('\n')
	for _, err := range s.Errs {
		fmt.Fprintf(&b, "not seen: %s\n", err)
	}
	for _, t := range s.Threads {
		if t.Name != "" {
			fmt.Fprintf(&b, "thread %s\n", t.Name)
		}
		for _, f := range t.Frames {
			fmt.Fprintf(&b, "    %s\n", f)
		}
	}
	return b.String()
}
