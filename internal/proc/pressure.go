package proc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Pressure is how much of the last ten seconds tasks spent waiting, in percent.
// Some: at least one waited; full: all that could have run did.
type Pressure struct {
	CPU                float64 // some
	Memory, MemoryFull float64
	IO, IOFull         float64
}

// MachinePressure is where the kernel tells the pressure of the whole machine.
const MachinePressure = "/proc/pressure"

// PressureOf is the folder that tells under which pressure a process works: its
// cgroup, or the machine where that tells nothing of its own.
func PressureOf(pid int) string {
	mounts, errMounts := fileOf(pid, "mountinfo", 1<<20)
	groups, errGroups := fileOf(pid, "cgroup", 4<<10)
	if errMounts != nil || errGroups != nil {
		return MachinePressure
	}
	for _, folder := range cgroupFolders(string(mounts), string(groups)) {
		if _, err := os.Stat(filepath.Join(folder, "io.pressure")); err == nil && isCgroup(folder) {
			return folder
		}
	}
	return MachinePressure
}

// ReadPressure reads what a folder of PressureOf tells. Each file has its own
// short limit. The error says that the kernel does not keep it or does not
// answer; nothing is known then.
func ReadPressure(folder string) (Pressure, error) {
	var p Pressure
	var cpuFull float64 // of a machine as a whole it is always 0
	suffix := ".pressure"
	if folder == MachinePressure {
		suffix = ""
	}
	for name, into := range map[string][2]*float64{
		"cpu": {&p.CPU, &cpuFull}, "memory": {&p.Memory, &p.MemoryFull}, "io": {&p.IO, &p.IOFull},
	} {
		text, err := guarded(readLimit, func() ([]byte, error) { return os.ReadFile(filepath.Join(folder, name+suffix)) })
		if err == nil {
			*into[0], *into[1], err = parsePressure(text)
		}
		if err != nil {
			return Pressure{}, fmt.Errorf("cannot read %s pressure: %w", name, err)
		}
	}
	return p, nil
}

// NoPressure reports whether an error of ReadPressure says that the kernel does
// not keep pressure at all, which is nothing to wonder at.
func NoPressure(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.EOPNOTSUPP)
}

// parsePressure reads "some avg10=1.23 avg60=..." and the same for full, which
// old kernels do not have for the CPU.
func parsePressure(text []byte) (some, full float64, err error) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	seen := false
	for lines.Scan() {
		kind, rest, _ := strings.Cut(lines.Text(), " ")
		value, ok := strings.CutPrefix(strings.Fields(rest + " x")[0], "avg10=")
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("cannot read %q: %w", lines.Text(), err)
		}
		switch kind {
		case "some":
			some, seen = n, true
		case "full":
			full = n
		}
	}
	if !seen {
		return 0, 0, fmt.Errorf("no avg10 in %q", clip(string(text), 80))
	}
	return some, full, nil
}
