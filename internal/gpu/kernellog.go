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

// xidOfLine reads an Xid from a line of the kernel log. gpus tell which GPU has
// the bus address; without them the Index is -1. At is left to the caller.
func xidOfLine(line string, gpus []GPU) (x Xid, ok bool) {
	m := xidLine.FindStringSubmatch(line)
	if m == nil {
		return Xid{}, false
	}
	code, err := strconv.Atoi(m[2])
	if err != nil {
		return Xid{}, false
	}
	x = Xid{Code: code, Index: -1}
	x.details(line)
	for _, g := range gpus {
		if sameBus(g.PCI, m[1]) {
			x.UUID, x.Index = g.UUID, g.Index
		}
	}
	return x, true
}

// linkError is how the driver calls an error of NVLink 5 (Xid 144 to 150):
// "149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 09".
var linkError = regexp.MustCompile(`, \w+\s+(Link Fatal|Fatal|Nonfatal|Non-fatal)\s`)

// recoveryChange is the line of Xid 154.
var recoveryChange = regexp.MustCompile(`recovery action changed from \S+ \(.*?\) to 0x([0-9a-fA-F]{1,4}) `)

// details takes what the line says beyond the code.
func (x *Xid) details(line string) {
	if m := linkError.FindStringSubmatch(line); m != nil && x.Code >= 144 && x.Code <= 150 {
		x.Fatal = strings.HasSuffix(m[1], "Fatal")
		x.Harmless = !x.Fatal
	}
	if m := recoveryChange.FindStringSubmatch(line); m != nil && x.Code == 154 {
		if action, err := strconv.ParseInt(m[1], 16, 32); err == nil {
			x.Recovery = Read(action)
		}
	}
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

// KernelNews is what the kernel log says that may end a server.
type KernelNews struct {
	Xids  []Xid
	Kills []OOMKill
}

// OOMKill is a process that the kernel ended for want of memory.
type OOMKill struct {
	At   time.Time
	PID  int // as the host numbers it
	Text string
}

// oomLine is the kernel's word for it, of the machine or of a cgroup.
var oomLine = regexp.MustCompile(`(?:Out of memory|Memory cgroup out of memory): Killed process (\d+) \(.*`)

// ReadKernelLog reads the news in the kernel log from since on, oldest first. An
// error says that the log may not be read by this user, or is not there, as in
// most containers; then nothing is known.
func ReadKernelLog(ctx context.Context, since time.Time, gpus []GPU) (news KernelNews, err error) {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return news, fmt.Errorf("cannot read the kernel log: %w", os.NewSyscallError("open", err))
	}
	defer unix.Close(fd)
	boot, err := bootTime()
	if err != nil {
		return news, fmt.Errorf("cannot read the kernel log: %w", err)
	}
	record := make([]byte, maxRecord)
	for ctx.Err() == nil {
		n, err := unix.Read(fd, record)
		switch {
		case errors.Is(err, unix.EAGAIN) || n == 0 && err == nil:
			return news, nil
		case errors.Is(err, unix.EPIPE) || errors.Is(err, unix.EINTR):
			continue // records were overwritten while we read: go on with the oldest left
		case err != nil:
			return news, fmt.Errorf("cannot read the kernel log: %w", os.NewSyscallError("read", err))
		}
		if at, text, ok := parseRecord(string(record[:n]), boot); ok && !at.Before(since) {
			news.add(at, text, gpus)
		}
	}
	return news, ctx.Err()
}

// add takes a line of the log.
func (k *KernelNews) add(at time.Time, line string, gpus []GPU) {
	if x, ok := xidOfLine(line, gpus); ok {
		x.At = at
		k.Xids = append(k.Xids, x)
	}
	if m := oomLine.FindStringSubmatch(line); m != nil {
		if pid, err := strconv.Atoi(m[1]); err == nil {
			k.Kills = append(k.Kills, OOMKill{At: at, PID: pid, Text: strings.TrimSpace(m[0])})
		}
	}
}

// bootTime is when the clock of the kernel log began.
func bootTime() (time.Time, error) {
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &up); err != nil {
		return time.Time{}, err
	}
	return time.Now().Add(-time.Duration(up.Nano())), nil
}

// parseRecord reads "priority,number,microseconds,flags;text", of which only the
// first line is the message.
func parseRecord(record string, boot time.Time) (at time.Time, text string, ok bool) {
	head, text, ok := strings.Cut(record, ";")
	fields := strings.Split(head, ",")
	if !ok || len(fields) < 3 {
		return time.Time{}, "", false
	}
	micros, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return time.Time{}, "", false
	}
	text, _, _ = strings.Cut(text, "\n")
	return boot.Add(time.Duration(micros) * time.Microsecond), text, true
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
