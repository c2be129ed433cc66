package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sglaunch/internal/plain"
)

// The socket itself: whose it is, and who may speak to it.

// clearAway removes a socket that nobody answers on, and nothing else.
func clearAway(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("cannot use the control socket %q: %w", path, cause(err))
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("cannot use %q as the control socket: it is no socket", path)
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		_ = conn.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("cannot use the control socket %q: another process answers there", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot replace the control socket %q: %w", path, cause(err))
	}
	return nil
}

// listen binds the socket with mode 0600: on Linux the mode of a socket file is
// that which its descriptor has before, so that it is at no moment anybody
// else's.
func listen(path string) (*net.UnixListener, error) {
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if e := c.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), 0o600) }); e != nil {
			return e
		}
		return err
	}}
	l, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	return l.(*net.UnixListener), nil
}

// permitted: root and the user of the launch, as the kernel knows them.
func permitted(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	var cred *unix.Ucred
	if e := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); e != nil || err != nil {
		return false
	}
	return cred.Uid == 0 || int(cred.Uid) == os.Geteuid()
}

// cause drops operation and path, which the message has in its own words.
func cause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return plain.Error(err)
}

// stay opens the socket again where somebody has removed it: a logout takes the
// runtime directory away, a cleaner what it holds for old. What stands in its place
// is left alone.
func (s *Server) stay() {
	look := time.NewTicker(s.o.Look)
	defer look.Stop()
	for {
		select {
		case <-look.C:
		case <-s.over:
			return
		}
		if _, err := os.Lstat(s.o.Path); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		_ = os.Mkdir(filepath.Dir(s.o.Path), 0o700)
		if l, err := listen(s.o.Path); err == nil {
			s.move(l)
		}
	}
}

// move answers on another listener from now on. Whoever is served stays.
func (s *Server) move(l *net.UnixListener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = l.Close()
		return
	}
	s.listener.SetUnlinkOnClose(false) // the file of that name is the new one's
	_ = s.listener.Close()
	s.listener = l
	s.clients.Go(func() { s.accept(l) })
}
