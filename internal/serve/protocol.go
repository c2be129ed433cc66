package serve

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// What a Request may want done.
const (
	DoStatus  = "status"
	DoWatch   = "watch"
	DoStop    = "stop"
	DoRestart = "restart"
	DoReload  = "reload"  // read launch.toml again
	DoUpgrade = "upgrade" // let Program be the supervisor
)

// Request is the one line that a client says.
type Request struct {
	Do    string `json:"do"`
	Force bool   `json:"force,omitempty"` // stop: do not let the server drain
	By    string `json:"by,omitempty"`    // who asks, for the records

	// Of an upgrade: the program that takes over, and what it speaks.
	Program  string `json:"program,omitempty"`
	Protocol int    `json:"protocol,omitempty"`
	Journal  int    `json:"journal,omitempty"`
}

// Bounds of a conversation.
const (
	requestMost = 4 << 10 // bytes
	lineMost    = 8 << 20 // bytes of an answer
	byMost      = 100     // runes
)

func (r Request) check() error {
	switch r.Do {
	case DoStatus, DoWatch, DoStop, DoRestart, DoReload, DoUpgrade:
		return nil
	}
	return fmt.Errorf("cannot do %q: this launch knows %s, %s, %s, %s, %s and %s",
		r.Do, DoStatus, DoWatch, DoStop, DoRestart, DoReload, DoUpgrade)
}

// who names the asker as a person reads it.
func (r Request) who() string {
	by := []rune(Plain(r.By))
	if len(by) == 0 {
		return "the control socket"
	}
	return string(by[:min(len(by), byMost)])
}

// readRequest takes one line and not a byte more than a request may have.
func readRequest(from io.Reader) (Request, error) {
	var r Request
	line, err := bufio.NewReaderSize(io.LimitReader(from, requestMost), requestMost).ReadSlice('\n')
	switch {
	case len(line) == requestMost:
		return r, fmt.Errorf("cannot read a request of more than %d bytes", requestMost)
	case err != nil && (!errors.Is(err, io.EOF) || len(bytes.TrimSpace(line)) == 0):
		return r, errNoRequest
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return r, fmt.Errorf("cannot read the request: it is no line of JSON such as {\"do\":\"status\"}: %w", err)
	}
	return r, r.check()
}

// errNoRequest: the client said nothing, in time or at all.
var errNoRequest = errors.New("no request")

func encodeLine(v any) ([]byte, error) {
	line, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("cannot encode an answer: %w", err)
	}
	return append(line, '\n'), nil
}

// answer is an envelope of this package's own.
func answer(s Status, event, text string) Envelope {
	return Envelope{V: Version, Time: time.Now(), Launch: s.Launch, Attempt: s.Attempt, Event: event, Text: text}
}
