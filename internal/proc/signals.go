package proc

import (
	"bytes"
	"strconv"

	"golang.org/x/sys/unix"
)

// Catches reports whether a process has a handler for a signal; one that cannot be
// looked at has none.
func Catches(pid int, sig unix.Signal) bool {
	text, err := fileOf(pid, "status", 8<<10)
	if err != nil {
		return false
	}
	_, text, _ = bytes.Cut(text, []byte("\nSigCgt:\t"))
	mask, _, _ := bytes.Cut(text, []byte("\n"))
	caught, err := strconv.ParseUint(string(mask), 16, 64)
	return err == nil && caught&(1<<(sig-1)) != 0
}
