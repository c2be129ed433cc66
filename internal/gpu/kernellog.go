package gpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// xidLine is the driver's line for an Xid; the wording up to the code is the
// stable part.
var xidLine = regexp.MustCompile(`NVRM: Xid \(PCI:([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})[^)]*\): (\d+)`)

// XidOfLine reads an Xid from a line of the kernel log. gpus tell which GPU has
// the bus address; without them the Index is -1. At is left to the caller.
func XidOfLine(line string, gpus []GPU) (x Xid, ok bool) {
	m := xidLine.FindStringSubmatch(line)
	if m == nil {
		return Xid{}, false
	}
	code, err := strconv.Atoi(m[2])
	if err != nil {
		return Xid{}, false
	}
	x = Xid{Code: code, Index: -1}
	for _, g := range gpus {
		if sameBus(g.PCI, m[1]) {
			x.UUID, x.Index = g.UUID, g.Index
		}
	}
	return x, true
}

// sameBus compares an address of NVML, 00000000:3B:00.0, with one of the kernel
// log, 0000:3b:00.
func sameBus(nvml, kernel string) bool {
	nvml, _, _ = strings.Cut(strings.ToLower(nvml), ".")
	kernel = strings.ToLower(kernel)
	return kernel != "" && strings.TrimLeft(nvml, "0") == strings.TrimLeft(kernel, "0")
}

// maxRecord is the longest record that /dev/kmsg gives.
const maxRecord = 8 << 10

// KernelXids reads the Xids in the kernel log from since on, oldest first. An
// error says that the log may not be read by this user, or is not there, as in
// most containers; then nothing is known.
func KernelXids(ctx context.Context, since time.Time, gpus []GPU) ([]Xid, error) {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot read the kernel log: %w", os.NewSyscallError("open", err))
	}
	defer unix.Close(fd)
	boot, err := bootTime()
	if err != nil {
		return nil, fmt.Errorf("cannot read the kernel log: %w", err)
	}
	var xids []Xid
	record := make([]byte, maxRecord)
	for ctx.Err() == nil {
		n, err := unix.Read(fd, record)
		switch {
		case errors.Is(err, unix.EAGAIN) || n == 0 && err == nil:
			return xids, nil
		case errors.Is(err, unix.EPIPE) || errors.Is(err, unix.EINTR):
			continue // records were overwritten while we read: go on with the oldest left
		case err != nil:
			return xids, fmt.Errorf("cannot read the kernel log: %w", os.NewSyscallError("read", err))
		}
		if x, ok := xidOfRecord(string(record[:n]), boot, gpus); ok && !x.At.Before(since) {
			xids = append(xids, x)
		}
	}
	return xids, ctx.Err()
}

// bootTime is when the clock of the kernel log began.
func bootTime() (time.Time, error) {
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &up); err != nil {
		return time.Time{}, err
	}
	return time.Now().Add(-time.Duration(up.Nano())), nil
}

// xidOfRecord reads "priority,number,microseconds,flags;text".
func xidOfRecord(record string, boot time.Time, gpus []GPU) (Xid, bool) {
	head, text, ok := strings.Cut(record, ";")
	fields := strings.Split(head, ",")
	if !ok || len(fields) < 3 {
		return Xid{}, false
	}
	micros, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return Xid{}, false
	}
	x, ok := XidOfLine(text, gpus)
	x.At = boot.Add(time.Duration(micros) * time.Microsecond)
	return x, ok
}

// silence ends an incident: an Xid of the same kind after it is another one.
const silence = 3 * time.Minute

// Incident is one kind of Xid on one GPU, however often it was reported.
type Incident struct {
	Xid             // the first
	Count int       // of reports
	Last  time.Time // of the last
}

// Incidents groups Xids that are in the order of their time. The same Xid told
// by the driver and by the kernel log counts as two reports of one incident.
func Incidents(xids []Xid) []Incident {
	var found []Incident
next:
	for _, x := range xids {
		for i := range found {
			in := &found[i]
			if in.Code == x.Code && in.Index == x.Index && in.UUID == x.UUID && x.At.Sub(in.Last) <= silence {
				in.Count++
				in.Last = x.At
				continue next
			}
		}
		found = append(found, Incident{Xid: x, Count: 1, Last: x.At})
	}
	return found
}
