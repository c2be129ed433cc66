package shim

import (
	"fmt"
	"os"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"sglaunch/internal/shim/wire"
)

// Without a terminal of ours the server sees one that is wide enough for its
// progress bars, which would be cut at 80 columns.
var wideWindow = pty.Winsize{Rows: 50, Cols: 250}

const pipeSize = 1 << 20 // bytes that a server on pipes may be ahead of us

// stage is what a server stands on: its descriptors and our ends of them.
type stage struct {
	master  *os.File // of the pty; nil with pipes
	theirs  []*os.File
	borrows *os.File // the one of theirs that is the person's
	typed   bool     // what is typed at our terminal goes to the master
	sources []source
}

// source is one output of the server.
type source struct {
	from     *os.File
	lane     lane
	terminal bool
}

// setStage makes the descriptors of a server. Where no pty is to be had it takes
// pipes and says so.
func (s *shim) setStage(spec wire.Spec) (*stage, error) {
	switch spec.Stdio {
	case "", "pty", "pipe":
	default:
		return nil, fmt.Errorf("cannot use stdio %q: it is pty or pipe", spec.Stdio)
	}
	switch spec.Stdin {
	case "", "auto", "null", "inherit":
	default:
		return nil, fmt.Errorf("cannot use stdin %q: it is auto, null or inherit", spec.Stdin)
	}
	if spec.Stdio == "pipe" {
		return s.pipes(spec)
	}
	st, err := s.terminal(spec)
	if err == nil {
		return st, nil
	}
	s.troubleLater(fmt.Sprintf("%v; the server is started on pipes", err))
	return s.pipes(spec)
}

// terminal opens a pty of the size of ours. It passes bytes as they are: no
// newline becomes two characters, nothing typed is shown twice.
func (s *shim) terminal(spec wire.Spec) (*stage, error) {
	master, slave, err := openTerminal()
	if err != nil {
		return nil, fmt.Errorf("cannot open a pty: %w", err)
	}
	st := &stage{
		master: master, theirs: []*os.File{nil, slave, slave},
		sources: []source{{from: master, lane: both, terminal: true}},
	}
	fd := int(slave.Fd()) // Fd, not fdOf: the server must get a blocking terminal
	mode, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err == nil {
		mode.Oflag &^= unix.OPOST
		mode.Lflag &^= unix.ECHO | unix.ECHONL
		err = unix.IoctlSetTermios(fd, unix.TCSETS, mode)
	}
	if err == nil {
		err = pty.Setsize(master, s.window())
	}
	if err != nil {
		st.close()
		return nil, fmt.Errorf("cannot set up the pty: %w", err)
	}
	switch {
	case spec.Stdin == "inherit":
		st.lend(s.o.Stdin)
	case spec.Stdin != "null" && isTerminal(s.o.Stdin):
		st.theirs[0], st.typed = slave, true
	}
	return st, nil
}

// openTerminal opens a pty whose master the runtime does not watch. Package pty
// makes it a blocking one and leaves it to the runtime's poller all the same, which
// then wakes a thread that has nothing to do for each reading, of 4 KiB at most.
func openTerminal() (master, slave *os.File, err error) {
	watched, slave, err := pty.Open()
	if err != nil {
		return nil, nil, err
	}
	defer watched.Close()
	fd, err := unix.FcntlInt(uintptr(fdOf(watched)), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		slave.Close()
		return nil, nil, err
	}
	return os.NewFile(uintptr(fd), watched.Name()), slave, nil
}

func (s *shim) pipes(spec wire.Spec) (*stage, error) {
	st := &stage{theirs: []*os.File{nil}}
	for _, l := range []lane{output, errout} {
		r, w, err := os.Pipe()
		if err != nil {
			st.close()
			return nil, fmt.Errorf("cannot make a pipe: %w", err)
		}
		fd := w.Fd() // Fd, not fdOf: the server must get a blocking pipe
		_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize)
		st.theirs = append(st.theirs, w)
		st.sources = append(st.sources, source{from: r, lane: l})
	}
	if spec.Stdin == "inherit" || spec.Stdin != "null" && isTerminal(s.o.Stdin) {
		st.lend(s.o.Stdin)
	}
	return st, nil
}

// lend gives the server a descriptor that is not ours to close.
func (st *stage) lend(f *os.File) { st.theirs[0], st.borrows = f, f }

// closeTheirs closes our copies of the server's ends.
func (st *stage) closeTheirs() {
	for _, f := range st.theirs {
		if f != nil && f != st.borrows {
			f.Close() // twice for the slave, which is harmless
		}
	}
	st.theirs = nil
}

// close closes everything. A pending read of a pipe ends, one of the terminal
// with the next that somebody prints.
func (st *stage) close() {
	st.closeTheirs()
	for _, src := range st.sources {
		src.from.Close()
	}
}

// window is the size that the server's terminal should have.
func (s *shim) window() *pty.Winsize {
	for _, f := range []*os.File{s.o.Stdout, s.o.Stdin, s.o.Stderr} {
		if !isTerminal(f) {
			continue
		}
		if size, err := unix.IoctlGetWinsize(fdOf(f), unix.TIOCGWINSZ); err == nil && size.Row > 0 && size.Col > 0 {
			return &pty.Winsize{Rows: size.Row, Cols: size.Col, X: size.Xpixel, Y: size.Ypixel}
		}
	}
	return &wideWindow
}

// resize follows our terminal, and reports whether that told the server: the
// kernel sends it SIGWINCH where the size has changed.
func (s *shim) resize() bool {
	if s.srv.stage == nil || s.srv.stage.master == nil || s.facts.Drained {
		return false
	}
	master, want := s.srv.stage.master, s.window()
	is, err := pty.GetsizeFull(master)
	if err != nil || *is == *want {
		return false
	}
	return pty.Setsize(master, want) == nil
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(fdOf(f), unix.TCGETS)
	return err == nil
}
