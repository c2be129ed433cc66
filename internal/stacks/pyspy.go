package stacks

import (
	"encoding/json"
	"errors"
	"fmt"
)

// pySpyArgs make py-spy (0.3 and later) print one look without stopping the
// process, whose ranks may be in a collective.
func pySpyArgs(tool string, pid int) []string {
	return []string{tool, "dump", "--nonblocking", "--json", "--pid", fmt.Sprint(pid)}
}

// pySpyThread is the part of py-spy's answer that is used.
type pySpyThread struct {
	Name   string `json:"thread_name"`
	OSID   int    `json:"os_thread_id"`
	Frames []struct {
		Name  string `json:"name"`
		File  string `json:"filename"`
		Short string `json:"short_filename"`
		Line  int    `json:"line"`
	} `json:"frames"`
}

// parsePySpy reads the answer to pySpyArgs; the main thread comes first.
func parsePySpy(text []byte, pid int) ([]Thread, error) {
	var threads []pySpyThread
	if err := json.Unmarshal(text, &threads); err != nil {
		return nil, fmt.Errorf("cannot read what py-spy prints: %w", err)
	}
	var all []Thread
	for _, t := range threads {
		next := Thread{Name: t.Name}
		for _, f := range t.Frames {
			file := f.Short
			if file == "" {
				file = f.File
			}
			next.Frames = append(next.Frames, Frame{Func: f.Name, File: file, Line: f.Line})
		}
		if t.OSID == pid || t.OSID == 0 && t.Name == "MainThread" {
			all = append([]Thread{next}, all...)
		} else {
			all = append(all, next)
		}
	}
	if len(all) == 0 || len(all[0].Frames) == 0 {
		return nil, errors.New("cannot read what py-spy prints: no frame of the main thread")
	}
	return all, nil
}
