package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"sglaunch/internal/proc"
	"sglaunch/internal/sglangcmd"
	"sglaunch/internal/shim/wire"
	"sglaunch/internal/statedir"
	"sglaunch/patch"
	"sglaunch/supervisor/journal"
	"sglaunch/supervisor/machine"
)

// Serve is the life of one supervisor: it makes or takes up the launch of the
// shim that it has met, and decides until the launch has ended, or until another
// program is to go on in its place. It returns an error where it could not
// begin; the shim then starts another.
func Serve(conn *wire.Conn, hello *wire.Hello, s Setup, o machine.Options) error {
	s.command = sglangcmd.Parse(s.Argv, s.Env, s.Dir)
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
	loop := NewLoop(l.machine, l.journal, hands)
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

// launch is what outlives a supervisor: the record of the launch on disk, and
// the machine brought to where the journal left it.
type launch struct {
	statedir.Launch
	ledger  *patch.Ledger
	lock    *flock.Flock // on the name
	memory  *memory
	tell    func(text string) // to a person; until there are Hands
	machine *machine.Machine
	journal *journal.Journal
	seen    map[int]int // observations of each attempt that the journal holds
	seq     uint64      // of its newest event
	first   machine.Body
	record  LaunchRecord
}

// takeUp begins the launch, or goes on with the one that the shim names.
func takeUp(conn *wire.Conn, hello *wire.Hello, s Setup, o machine.Options) (*launch, error) {
	ledger, err := patch.OpenLedger(s.State.Patches())
	if err != nil {
		return nil, noRecords(err, stateSetting)
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	lock, err := takeName(s, hello)
	if errors.Is(err, ErrAlreadyRunning) {
		return nil, err
	}
	if err != nil {
		return nil, noRecords(err, runtimeSetting)
	}
	l := &launch{ledger: ledger, lock: lock}
	if hello.Launch == nil {
		return l, l.create(conn, hello, s, o)
	}
	return l, l.resume(conn, hello, s, o)
}

// ErrNoRecords says that the state directory takes no files: nothing could be
// known of a launch later, so that none begins.
var ErrNoRecords = errors.New("cannot keep records")

// noRecords is that error with what a person may set against it.
func noRecords(err error, setting string) error {
	return fmt.Errorf("%w: %w; set %s to a folder that can be written and has room", ErrNoRecords, err, setting)
}

const (
	stateSetting   = "SGLAUNCH_STATE or [log] directory"
	runtimeSetting = "SGLAUNCH_STATE or SGLAUNCH_RUNTIME"
)

// create makes a launch. Of one that cannot begin nothing stays.
func (l *launch) create(conn *wire.Conn, hello *wire.Hello, s Setup, o machine.Options) (err error) {
	defer func() {
		if err != nil && l.Path != "" {
			_ = os.RemoveAll(l.Path) // what the disk does not remove is told as never started
		}
	}()
	now := time.Now()
	if l.Launch, err = s.State.NewLaunch(s.Name, now); err != nil {
		return noRecords(err, stateSetting)
	}
	l.record = newLaunchRecord(l.Launch, hello, s, now)
	if err := l.record.write(l.Record()); err != nil {
		return noRecords(err, stateSetting)
	}
	if err := heal(conn, s); err != nil {
		return err
	}
	if err := conn.Send(wire.Message{Type: wire.Adopt, Launch: &wire.Launch{ID: l.ID, Name: s.Name, Dir: l.Path}}); err != nil {
		return err
	}
	return l.begin(conn, s, o)
}

// begin opens the journal of a launch in which nothing has happened yet.
func (l *launch) begin(conn *wire.Conn, s Setup, o machine.Options) (err error) {
	l.remember(conn, s)
	o.Learned = l.memory.limits()
	l.first = l.memory.before(o.Window)
	if l.machine, err = machine.New(o); err != nil {
		return err
	}
	l.journal, err = journal.Create(l.Journal(), journal.Header{Launch: l.ID, Time: time.Now(), Options: o})
	if err != nil {
		return noRecords(err, stateSetting)
	}
	l.memory.begun(l.record)
	go s.tidy(tidyBeside, l.tell)
	return nil
}

// remember opens the history; that it cannot be kept is told once.
func (l *launch) remember(conn *wire.Conn, s Setup) {
	l.tell = func(text string) {
		if !s.Quiet {
			_ = conn.Send(wire.Message{Type: wire.Print, Text: "sglaunch: " + text})
		}
	}
	l.memory = openMemory(s, l.ID, l.private(), l.tell)
}

// private is where rungs give the launch compile caches of its own.
func (l *launch) private() string { return filepath.Join(l.Path, "private") }

// heal ends and undoes first what a dead sglaunch left behind: the new launch
// would meet its processes on the GPUs and its patches in the files.
func heal(conn *wire.Conn, s Setup) error {
	ctx, cancel := context.WithTimeout(context.Background(), machine.PatchLimit)
	defer cancel()
	healed, err := Recover(ctx, s.State)
	for _, h := range healed {
		whose := "launch " + h.Launch
		if h.Launch == "" {
			whose = "earlier launches"
		}
		text := fmt.Sprintf("sglaunch: healed what %s left behind: %d processes ended, %d files restored",
			whose, h.Killed, len(h.Restored))
		for _, p := range h.Left {
			text += fmt.Sprintf("; process %d (%s) would not go: %s", p.PID, p.Comm, proc.Condition(p))
		}
		if s.Quiet || h.Killed+len(h.Restored)+len(h.Left) == 0 { // it only was not written down that it had ended
			continue
		}
		if err := conn.Send(wire.Message{Type: wire.Print, Text: text}); err != nil {
			return err
		}
	}
	if errors.Is(err, patch.ErrDrifted) { // told, and no obstacle: a plan refuses the file if it is needed
		return conn.Send(wire.Message{Type: wire.Print, Text: "sglaunch: " + err.Error()})
	}
	if err != nil {
		return fmt.Errorf("cannot restore what an earlier launch had patched: %w", err)
	}
	return nil
}

func (l *launch) resume(conn *wire.Conn, hello *wire.Hello, s Setup, o machine.Options) (err error) {
	if l.Launch, err = s.State.OpenLaunch(hello.Launch.ID); err != nil {
		return err
	}
	if l.record, err = ReadLaunchRecord(l.Record()); err != nil {
		return err
	}
	f, err := os.Open(l.Journal())
	if errors.Is(err, fs.ErrNotExist) {
		// The one before died between making the folder and the journal.
		return l.begin(conn, s, o)
	}
	if err != nil {
		return fmt.Errorf("cannot read the journal: %w", err)
	}
	defer f.Close()
	header, entries, _, err := journal.Read(f)
	if err != nil {
		return err
	}
	// The launch goes on by the rules it began with.
	if l.machine, err = header.Machine(); err != nil {
		return err
	}
	l.remember(conn, s)
	l.seen, l.seq = journal.Fold(l.machine, header.Seen, entries)
	l.memory.resume(entries)
	if l.journal, err = journal.Append(l.Journal()); err != nil {
		return err
	}
	l.first = machine.Resumed{
		Restarts: hello.Restarts, Attempt: hello.Attempt, Server: hello.Server,
		Exited: hello.Exited, TreeGone: hello.TreeGone,
	}
	if len(entries) == 0 && len(header.Snapshot) == 0 {
		l.first = machine.Begin{}
	}
	return nil
}

// closeMargin is how long the end of a launch may take to be written down.
const closeMargin = 12 * time.Second

// close writes down how the launch ended and makes room for the next ones.
func (l *launch) close(s Setup, code int) {
	l.record.Ended, l.record.Code = time.Now(), code
	switch err := l.record.writeEnd(l.Record()); {
	case errors.Is(err, fs.ErrNotExist):
		l.tell(fmt.Sprintf("the records of this launch are gone: %s was removed while it ran", l.Path))
	case err != nil:
		l.tell(fmt.Sprintf("the records lack how the launch ended: %v", err))
	}
	_ = l.journal.Close(5 * time.Second)
	l.memory.finish(code)
	s.tidy(tidyLast, l.tell)
}
