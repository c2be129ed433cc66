package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"syscall"
)

// ErrNobody says that nobody answers on a control socket: the launch is not
// running, or it runs without a supervisor.
var ErrNobody = errors.New("nobody answers")

// Ask says one request and returns the answer to it: the status for DoStatus,
// nil for what was accepted. ctx bounds the conversation.
func Ask(ctx context.Context, path string, r Request) (*Status, error) {
	status, _, err := Say(ctx, path, r)
	return status, err
}

// Say is Ask for a request whose acceptance has something to tell.
func Say(ctx context.Context, path string, r Request) (*Status, *Envelope, error) {
	var status *Status
	var accepted *Envelope
	err := talk(ctx, path, r, func(line []byte) error {
		s, e, err := decode(line)
		if err != nil {
			return err
		}
		status, accepted = s, e
		return io.EOF
	})
	if errors.Is(err, io.EOF) {
		return status, accepted, nil
	}
	if err == nil {
		err = fmt.Errorf("cannot hear the launch: it closed the control socket without an answer (%d clients at a time, of the launch's user or root)", clientsMost)
	}
	return nil, nil, err
}

// Watch follows a launch until it ends (then it returns nil), line reports an
// error, the launch refuses, or ctx ends. line gets each document as it came and decoded: a Status
// or an Envelope.
func Watch(ctx context.Context, path string, line func(raw []byte, s *Status, e *Envelope) error) error {
	return talk(ctx, path, Request{Do: DoWatch}, func(raw []byte) error {
		s, e, err := decode(raw)
		if err != nil {
			return err
		}
		return line(raw, s, e)
	})
}

// talk says r and gives each line of the answer to take.
func talk(ctx context.Context, path string, r Request, take func([]byte) error) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("cannot reach the control socket %q: %w", path, ErrNobody)
	case err != nil:
		return fmt.Errorf("cannot reach the control socket %q: %w", path, cause(err))
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := send(conn, r); err != nil {
		return heard(ctx, err)
	}
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, lineMost)
	for lines.Scan() {
		if err := take(lines.Bytes()); err != nil {
			return err
		}
	}
	return heard(ctx, lines.Err())
}

func heard(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("cannot hear the launch: it does not answer in time: %w", ctx.Err())
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return nil // it has ended
	case err != nil:
		return fmt.Errorf("cannot hear the launch: %w", cause(err))
	}
	return nil
}

// decode reads a document of either kind; a refusal is an error.
func decode(line []byte) (*Status, *Envelope, error) {
	var e Envelope
	if err := json.Unmarshal(line, &e); err != nil {
		return nil, nil, fmt.Errorf("cannot read the launch's answer: %w", err)
	}
	switch e.Event {
	case EventStatus:
	case EventRefused:
		return nil, nil, errors.New(e.Text)
	default:
		return nil, &e, nil
	}
	var s Status
	if err := json.Unmarshal(line, &s); err != nil {
		return nil, nil, fmt.Errorf("cannot read the launch's status: %w", err)
	}
	return &s, nil, nil
}
