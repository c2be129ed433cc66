package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Activity is one reading of what a set of processes has done so far. Counters
// only grow over the life of a Sampler: what a member did before it ended
// stays in them.
type Activity struct {
	CPU       time.Duration // user and system time
	ReadBytes uint64        // fetched from storage; a warm page cache reads nothing
	Written   uint64        // bytes given to storage: what a download arrives as
	Faults    uint64        // page faults, minor and major
	Major     uint64        // of these the major ones: a page came from storage
	Compilers []Proc        // members that compile: new since the last reading, or with CPU time used since
	States    map[byte]int  // how many of the living are in which state
	Blocked   []string      // members in uninterruptible sleep, "pid name"
	Living    int
	Missing   []string // what could not be read, and why
}

// compilers are the programs that a silent start may be busy with: ninja and
// what it runs for FlashInfer and torch extensions, and Triton's ptxas.
var compilers = map[string]bool{
	"ninja": true, "nvcc": true, "cicc": true, "ptxas": true, "cudafe++": true, "fatbinary": true,
	"cc1plus": true, "cc1": true, "g++": true, "gcc": true, "c++": true, "clang": true, "clang++": true,
	"ld": true, "as": true, "collect2": true, "hipcc": true, "nvlink": true,
}

// workers are programs of an interpreter that compile: torch's inductor keeps a
// pool of them, which Triton's compiler runs in too. Their name is python's, so
// they are known by their command line.
const workers = "compile_worker"

// Sampler reads activity again and again. It is used by one goroutine.
type Sampler struct {
	last map[ID]counters
	done counters // of members that have ended
}

type counters struct {
	cpu, read, written, faults, major uint64
	compiles                          bool
}

func (c *counters) add(o counters) {
	c.cpu += o.cpu
	c.read += o.read
	c.written += o.written
	c.faults += o.faults
	c.major += o.major
}

// NewSampler returns a sampler that has read nothing yet.
func NewSampler() *Sampler { return &Sampler{last: map[ID]counters{}} }

// Sample reads the members once. Each read has its own limit, so that a
// process that hangs in the kernel holds nobody; ctx bounds the whole round.
func (s *Sampler) Sample(ctx context.Context, members []ID) Activity {
	a := Activity{States: map[byte]int{}}
	now := make(map[ID]counters, len(members))
	denied := 0
	for i, id := range members {
		if ctx.Err() != nil {
			a.Missing = append(a.Missing, fmt.Sprintf("%d of %d processes: no time left", len(members)-i, len(members)))
			break
		}
		p, err := Identify(id.PID)
		if err != nil || p.Start != id.Start || p.Dead() {
			continue
		}
		a.Living++
		a.States[p.State]++
		before, known := s.last[id]
		c := counters{cpu: p.CPU, faults: p.MinorFaults + p.MajorFaults, major: p.MajorFaults}
		c.compiles = before.compiles || compiles(p, known)
		if c.read, c.written, err = storageBytes(id.PID); err != nil {
			denied++
			c.read, c.written = before.read, before.written
		}
		now[id] = c
		if c.compiles && (!known || c.cpu > before.cpu) {
			a.Compilers = append(a.Compilers, p)
		}
		if p.State == 'D' {
			a.Blocked = append(a.Blocked, fmt.Sprintf("%d %s", p.PID, p.Comm))
		}
	}
	if denied > 0 {
		a.Missing = append(a.Missing, fmt.Sprintf("bytes read by %d of %d processes", denied, a.Living))
	}
	s.fold(now, &a)
	return a
}

// fold adds up what the living and the ended have done.
func (s *Sampler) fold(now map[ID]counters, a *Activity) {
	for id, c := range s.last {
		if _, living := now[id]; !living {
			s.done.add(c)
		}
	}
	s.last = now
	total := s.done
	for _, c := range now {
		total.add(c)
	}
	a.CPU = time.Duration(total.cpu) * TickLength
	a.ReadBytes, a.Written, a.Faults, a.Major = total.read, total.written, total.faults, total.major
	sortProcs(a.Compilers)
}

// compiles tells a compiler by its name, and an interpreter that compiles by
// its command line, which is read once a process.
func compiles(p Proc, known bool) bool {
	if compilers[p.Comm] {
		return true
	}
	if known || !strings.HasPrefix(p.Comm, "python") && !strings.HasPrefix(p.Comm, "pt_main") {
		return false
	}
	return strings.Contains(Command(p), workers)
}

var errNoCounter = errors.New("no read_bytes")

// storageBytes are read_bytes and write_bytes of /proc/PID/io.
func storageBytes(pid int) (read, written uint64, err error) {
	text, err := fileOf(pid, "io", 1<<10)
	if err != nil {
		return 0, 0, err
	}
	found := false
	for line := range bytes.Lines(text) {
		name, value, _ := bytes.Cut(line, []byte(": "))
		n := number(bytes.TrimSpace(value))
		switch string(name) {
		case "read_bytes":
			read, found = n, true
		case "write_bytes":
			written = n
		}
	}
	if !found {
		return 0, 0, errNoCounter
	}
	return read, written, nil
}
