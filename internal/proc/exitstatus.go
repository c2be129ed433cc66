package proc

import (
	"bytes"
	"strconv"
	"syscall"
)

// statExit is the place of exit_code in /proc/PID/stat, counted from the state
// (field 52; Linux 3.5 and later).
const statExit = 49

// ExitStatus returns how a process ended that its parent has not collected
// yet. ok is false for a living process, one that is gone, and where the
// kernel does not tell (another user's process).
func ExitStatus(pid int) (status syscall.WaitStatus, ok bool) {
	var buf [1024]byte
	n, err := readInto("/proc/"+strconv.Itoa(pid)+"/stat", buf[:])
	if err != nil {
		return 0, false
	}
	text := buf[:n]
	shut := bytes.LastIndexByte(text, ')')
	if shut < 0 {
		return 0, false
	}
	place := 0
	for field := range bytes.FieldsSeq(text[shut+1:]) {
		switch {
		case place == statState && field[0] != 'Z' && field[0] != 'X':
			return 0, false
		case place == statExit:
			code, err := strconv.ParseUint(string(field), 10, 32)
			return syscall.WaitStatus(code), err == nil
		}
		place++
	}
	return 0, false
}
