package shim

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// fdOf returns the number of an open file and leaves its mode alone: File.Fd
// would make a shared terminal blocking for everybody.
func fdOf(f *os.File) int {
	number := -1
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { number = int(fd) })
	}
	return number
}

// sameFile reports whether two descriptors write to the same place, such as one
// terminal or one log.
func sameFile(a, b *os.File) bool {
	x, errX := a.Stat()
	y, errY := b.Stat()
	return errors.Join(errX, errY) == nil && os.SameFile(x, y)
}

// hasTerminal reports whether we belong to a terminal, which may vanish.
func hasTerminal() bool {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err == nil
}

// sameProgram reports whether a path that was started from still leads to the
// program that runs at the other.
func sameProgram(path, running string) bool {
	a, errA := os.Stat(path)
	b, errB := os.Stat(running)
	return errB != nil || errA == nil && os.SameFile(a, b)
}
