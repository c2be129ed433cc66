package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"sglaunch/internal/shim/wire"
	"sglaunch/internal/statedir"
	"sglaunch/patch"
	"sglaunch/supervisor/journal"
	"sglaunch/supervisor/machine"
)

// launch is what outlives a supervisor: the record of the launch on disk, and
// the machine brought to where the journal left it.
type launch struct {
	statedir.Launch
	ledger  *patch.Ledger
	lock    *flock.Flock // on the name
	memory  *memory
	tell    func(text string) // to a person; until there are hands
	machine *machine.Machine
	journal *journal.Journal
	seen    journal.Seen // what the journal holds
	bereft  bool         // files may be patched of which the ledger knows nothing any more
	seq     uint64       // of its newest event
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

// resume takes up the launch that the shim names. Where its records were removed or
// are damaged they are begun anew: a server that lives neither ends by that, nor is
// it left without anybody who watches it.
func (l *launch) resume(conn *wire.Conn, hello *wire.Hello, s Setup, o machine.Options) error {
	if err := l.reopen(hello, s); err != nil {
		return err
	}
	header, entries, err := readJournal(l.Journal())
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, journal.ErrNoHeader):
		return l.beginAnew(conn, hello, s, o, err)
	case err != nil:
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
	l.first = asResumed(hello)
	if hello.Attempt == 0 && len(entries) == 0 && len(header.Snapshot) == 0 {
		l.first = machine.Begin{}
	}
	return nil
}

// reopen finds folder and record of the launch, or writes them again.
func (l *launch) reopen(hello *wire.Hello, s Setup) (err error) {
	if l.Launch, err = s.State.RemakeLaunch(hello.Launch.ID, hello.Attempt); err != nil {
		return err
	}
	if l.record, err = ReadLaunchRecord(l.Record()); err == nil || !lostRecord(err) {
		return err
	}
	l.record = newLaunchRecord(l.Launch, hello, s, l.Began())
	return l.record.write(l.Record())
}

// lostRecord tells a record that is gone or damaged from one that the disk does not
// give at the moment.
func lostRecord(err error) bool {
	var io *fs.PathError
	return errors.Is(err, fs.ErrNotExist) || !errors.As(err, &io)
}

// beginAnew begins a journal where there is none, or none that can be read. The one
// before may have died between making the folder and the journal; later somebody has
// removed it, and what the shim keeps is taken up as it is.
func (l *launch) beginAnew(conn *wire.Conn, hello *wire.Hello, s Setup, o machine.Options, why error) error {
	if errors.Is(why, journal.ErrNoHeader) {
		if err := os.Rename(l.Journal(), l.Journal()+".damaged"); err != nil {
			return err
		}
	}
	if err := l.begin(conn, s, o); err != nil {
		return err
	}
	if hello.Attempt > 0 {
		l.tell(fmt.Sprintf("the records of this launch are begun anew: %v", why))
		l.first = asResumed(hello)
	}
	l.bereft = hello.Lease != "" && !l.ledger.Knows(l.ID)
	return nil
}

func asResumed(hello *wire.Hello) machine.Resumed {
	return machine.Resumed{
		Restarts: hello.Restarts, Attempt: hello.Attempt, Server: hello.Server,
		Exited: hello.Exited, TreeGone: hello.TreeGone,
	}
}

func readJournal(path string) (header journal.Header, entries []journal.Entry, err error) {
	f, err := os.Open(path)
	if err != nil {
		return header, nil, fmt.Errorf("cannot read the journal: %w", err)
	}
	defer f.Close()
	header, entries, _, err = journal.Read(f)
	return header, entries, err
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

// closeMargin is how long the end of a launch may take to be written down.
const closeMargin = 12 * time.Second

// close writes down how the launch ended and makes room for the next ones.
func (l *launch) close(s Setup, code int) {
	l.record.Ended, l.record.Code = time.Now(), code
	switch err := l.record.leaveEnd(s.State, l.Launch); {
	case errors.Is(err, fs.ErrNotExist):
		l.tell(fmt.Sprintf("the records of this launch are gone: %s was removed while it ran", l.Path))
	case err != nil:
		l.tell(fmt.Sprintf("the records lack how the launch ended: %v", err))
	}
	_ = l.journal.Close(5 * time.Second)
	l.memory.finish(code)
	s.tidy(tidyLast, l.tell)
}
