package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Is tells whether a file that begins so is a journal.
func Is(head []byte) bool {
	return bytes.HasPrefix(head, []byte(`{"v":`)) && bytes.Contains(head, []byte(`,"launch":`)) && bytes.Contains(head, []byte(`,"options":{`))
}

// ErrNoHeader says that a file is no journal, or not any more: not even its first
// line can be read.
var ErrNoHeader = errors.New("its first line is not that of a journal")

// Read reads a journal. A torn last line, and lines torn by a death in
// between, are left out; torn counts them.
func Read(r io.Reader) (h Header, entries []Entry, torn int, err error) {
	in := bufio.NewReaderSize(r, 64<<10)
	first, err := readLine(in)
	switch {
	case errors.Is(err, io.EOF):
		return h, nil, 0, fmt.Errorf("cannot read the journal: %w", ErrNoHeader)
	case err != nil:
		return h, nil, 0, fmt.Errorf("cannot read the journal: %w", err)
	}
	if json.Unmarshal(first, &h) != nil || h.V == 0 {
		return h, nil, 0, fmt.Errorf("cannot read the journal: %w", ErrNoHeader)
	}
	if h.V != Version {
		return h, nil, 0, fmt.Errorf("cannot read a journal of version %d: this sglaunch reads version %d", h.V, Version)
	}
	for {
		line, err := readLine(in)
		if len(line) > 0 {
			var e Entry
			if json.Unmarshal(line, &e) == nil && e.Event.Body != nil {
				entries = append(entries, e)
			} else {
				torn++
			}
		}
		if errors.Is(err, io.EOF) {
			return h, entries, torn, nil
		}
		if err != nil {
			return h, entries, torn, fmt.Errorf("cannot read the journal: %w", err)
		}
	}
}

// readLine returns a line without its end; the last may come with io.EOF.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadBytes('\n')
	return bytes.TrimSuffix(line, []byte("\n")), err
}
