package proc

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Picture is what can be seen of one process from outside: evidence of what it
// did, or waited for, before it was ended.
type Picture struct {
	Proc
	Command string
	Wchan   string // kernel function in which it waits; "" = runs, or not permitted
	Stack   string // kernel stack; root only
	Read    uint64 // bytes from storage
}

// Pictures looks at each living member. It stops early when ctx ends.
func Pictures(ctx context.Context, members []ID) []Picture {
	var all []Picture
	for _, id := range members {
		if ctx.Err() != nil {
			return all
		}
		p, err := Identify(id.PID)
		if err != nil || p.Start != id.Start {
			continue
		}
		pic := Picture{Proc: p, Command: Command(p)}
		if text, err := fileOf(p.PID, "wchan", 200); err == nil && string(text) != "0" {
			pic.Wchan = string(text)
		}
		if text, err := fileOf(p.PID, "stack", 4<<10); err == nil {
			pic.Stack = strings.TrimSpace(string(text))
		}
		pic.Read, _, _ = storageBytes(p.PID) // 0 where it is not permitted
		all = append(all, pic)
	}
	return all
}

// String is the picture as a line, with the kernel stack below it.
func (p Picture) String() string {
	cpu := (time.Duration(p.CPU) * TickLength).Round(time.Millisecond)
	line := fmt.Sprintf("%7d %7d %c cpu %-10s read %-12d wchan %-24s %s", p.PID, p.PPID, p.State, cpu, p.Read, p.Wchan, p.Command)
	if p.Stack == "" {
		return line
	}
	return line + "\n        " + strings.ReplaceAll(p.Stack, "\n", "\n        ")
}
