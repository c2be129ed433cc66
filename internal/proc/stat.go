package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ErrGone says that the process does not exist (any more).
var ErrGone = errors.New("no such process")

// ID names one process beyond doubt.
type ID struct {
	PID   int
	Start uint64 // field 22 of /proc/PID/stat: clock ticks since boot
}

// Proc is one process as /proc/PID/stat showed it.
type Proc struct {
	ID
	PPID    int
	Group   int // process group
	Session int
	HasTTY  bool   // it belongs to a terminal
	Comm    string // at most 15 bytes
	State   byte   // R S D Z T t X I
	Threads int

	CPU         uint64 // user and system time of all its threads, clock ticks
	MinorFaults uint64
	MajorFaults uint64
}

// Dead reports whether p holds nothing any more: a zombie without a living
// thread. A zombie with threads is a process whose first thread has ended.
func (p Proc) Dead() bool { return p.State == 'X' || p.State == 'Z' && p.Threads <= 1 }

// Identify reads a process. The error is ErrGone where there is none.
func Identify(pid int) (Proc, error) {
	var buf [1024]byte
	n, err := readInto("/proc/"+strconv.Itoa(pid)+"/stat", buf[:])
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ESRCH):
		return Proc{}, ErrGone
	case err != nil:
		return Proc{}, fmt.Errorf("cannot read process %d: %w", pid, err)
	}
	return parseStat(buf[:n])
}

// StartTimeOf returns the start time of a process in clock ticks since boot.
func StartTimeOf(pid int) (uint64, error) {
	p, err := Identify(pid)
	return p.Start, err
}

// Alive reports whether this very process still lives; a zombie does not.
func Alive(id ID) bool {
	p, err := Identify(id.PID)
	return err == nil && p.Start == id.Start && !p.Dead()
}

// readInto reads a small /proc file without the costs of os.File.
func readInto(path string, buf []byte) (int, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Read(fd, buf)
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

// Places in /proc/PID/stat, counted from the state, which follows the name.
const (
	statState = iota
	statPPID
	statGroup
	statSession
	statTTY
	statMinor   = 7
	statMajor   = 9
	statUser    = 11
	statSystem  = 12
	statThreads = 17
	statStart   = 19
	statFields  = 20
)

// parseStat reads the text of /proc/PID/stat. A name may hold spaces and
// brackets, so fields count from the last bracket.
func parseStat(text []byte) (Proc, error) {
	open, shut := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 1 || shut < open {
		return Proc{}, fmt.Errorf("cannot read process: no name in %q", clip(string(text), 80))
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text[:open])))
	if err != nil {
		return Proc{}, fmt.Errorf("cannot read process: no pid in %q", clip(string(text), 80))
	}
	var n [statFields]uint64
	state := byte('?')
	place := 0
	for field := range bytes.FieldsSeq(text[shut+1:]) {
		if place == statState {
			state = field[0]
		} else {
			n[place] = number(field)
		}
		if place++; place == statFields {
			break
		}
	}
	if place < statFields {
		return Proc{}, fmt.Errorf("cannot read process %d: only %d fields", pid, place)
	}
	return Proc{
		ID:   ID{PID: pid, Start: n[statStart]},
		PPID: int(n[statPPID]), Group: int(n[statGroup]), Session: int(n[statSession]), HasTTY: n[statTTY] != 0,
		Comm: string(text[open+1 : shut]), State: state, Threads: int(n[statThreads]),
		CPU: n[statUser] + n[statSystem], MinorFaults: n[statMinor], MajorFaults: n[statMajor],
	}, nil
}

// number reads an unsigned decimal; the few signed fields of stat are not used
// and read as 0.
func number(text []byte) uint64 {
	var n uint64
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0
		}
		n = n*10 + uint64(c-'0')
	}
	return n
}

// clip bounds a text, keeping its beginning.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
}

// TickLength is the unit of Start and CPU. Linux has exported 100 ticks a
// second to user space on every architecture that SGLang runs on.
const TickLength = 10 * time.Millisecond

// BootID tells one boot of the machine from another: start times of two boots
// do not compare. It is "" where the kernel does not say.
var BootID = sync.OnceValue(func() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
})
