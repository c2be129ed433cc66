package supervisor

import (
	"fmt"
	"os"

	"sglaunch/internal/statedir"
)

// appender writes lines to one file at a time and opens the next when asked for it.
// It is used by one goroutine; the disk may refuse or hold it. What the disk refuses
// is lost, and no reason to end: it is told when that begins and when it is over.
type appender struct {
	what string            // the lines, in a word
	tell func(text string) // nil: they are not worth a word

	path string
	file *os.File
	err  error // of opening it
	torn bool  // the newest line stands there in part
	lost int   // lines, since the disk began to refuse
}

func (a *appender) to(path string) {
	if a.path == path && a.err == nil {
		return
	}
	a.close()
	a.path = path
	a.file, a.err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, statedir.FileMode)
}

// Write implements io.Writer on the file of the moment, for one whole line a call.
// It takes every line.
func (a *appender) Write(line []byte) (int, error) {
	err := a.append(line)
	switch {
	case err != nil:
		if a.lost++; a.lost == 1 && a.tell != nil {
			a.tell(fmt.Sprintf("cannot write the %s: %v; the launch goes on without them", a.what, err))
		}
	case a.lost > 0:
		if a.tell != nil {
			a.tell(fmt.Sprintf("the %s are written again; %d are missing", a.what, a.lost))
		}
		a.lost = 0
	}
	return len(line), nil
}

func (a *appender) append(line []byte) error {
	if a.err != nil {
		return a.err
	}
	if a.torn {
		line = append([]byte("\n"), line...)
	}
	n, err := a.file.Write(line)
	a.torn = err != nil && (a.torn || n > 0)
	return err
}

func (a *appender) close() {
	if a.file != nil {
		_ = a.file.Close()
	}
	a.path, a.file, a.err, a.torn = "", nil, nil, false
}
