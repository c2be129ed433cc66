package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sglaunch/internal/shim/wire"
	"sglaunch/supervisor/machine"
)

// Serve is the life of one supervisor: it makes or takes up the launch of the
// shim that it has met, and decides until the launch has ended, or until another
// program is to go on in its place. It returns an error where it could not
// begin; the shim then starts another.
func Serve(conn *wire.Conn, hello *wire.Hello, s Setup, o machine.Options) error {
	s.command = s.read()
	o.SGLang = o.SGLang || s.command.SGLang()
	o.Follower = o.Follower || s.command.Server().Nodes > 1
	o.Check.Cannot = s.cannotCheck()

	l, err := takeUp(conn, hello, s, o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	hands := newHands(ctx, conn, s, l)
	loop := newLoop(l.machine, l.journal, hands)
	loop.goOn(l.seq, l.seen)
	hands.begin(loop, hello, l)

	if s.Remember != hello.Ledger {
		hands.order(wire.Message{Type: wire.Ledger, Text: s.Remember})
	}
	gone := make(chan error, 1)
	go func() { gone <- hands.reader.Run() }()
	ended := make(chan int, 1)
	first := inOrder(l.first, unheard(hello.Asked, l.machine.Asks(), hello.Terminal), hello.Granted)
	go func() { ended <- loop.Run(first...) }()

	select {
	case program := <-hands.leave:
		loop.Leave()
		<-ended
		hands.close()
		_ = l.journal.Close(5 * time.Second) // what it lacks, the shim knows
		return conn.Send(wire.Message{Type: wire.Replace, Text: program})
	case code := <-ended:
		hands.close()
		s.Settings = *hands.settings()
		l.record.Reason = hands.front.reason()
		ctx, cancel := context.WithTimeout(ctx, closeMargin)
		defer cancel()
		<-within(ctx, func() error { l.close(s, code); return nil }) // the exit waits for no disk that hangs
		return conn.Send(wire.Message{Type: wire.Finish, Code: code})
	case err := <-gone:
		// The shim is gone: nobody owns the server any more.
		return hands.lastRites(err)
	}
}

// Greet takes the shim's first message.
func Greet(conn *wire.Conn) (*wire.Hello, error) {
	m, _, err := conn.Receive()
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot hear the shim: %w", err)
	case m == nil || m.Type != wire.Welcome || m.Hello == nil:
		return nil, errors.New("cannot work with this shim: it did not introduce itself")
	case m.Hello.Version != wire.Version:
		return nil, fmt.Errorf("cannot work with a shim of protocol %d: this supervisor speaks %d; stop the launch with the old sglaunch",
			m.Hello.Version, wire.Version)
	}
	return m.Hello, nil
}
