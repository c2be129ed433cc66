package shim

import (
	"errors"
	"os"
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
