package proc

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Pressure is how much of the last ten seconds the machine spent waiting, in
// percent. Some: at least one task waited; full: all that could run did.
type Pressure struct {
	CPU                float64 // some
	Memory, MemoryFull float64
	IO, IOFull         float64
}

// ReadPressure reads /proc/pressure. The error says that the kernel does not
// keep it; nothing is known then.
func ReadPressure() (Pressure, error) {
	var p Pressure
	var cpuFull float64 // of a machine as a whole it is always 0
	for name, into := range map[string][2]*float64{
		"cpu": {&p.CPU, &cpuFull}, "memory": {&p.Memory, &p.MemoryFull}, "io": {&p.IO, &p.IOFull},
	} {
		text, err := guarded(readLimit, func() ([]byte, error) { return os.ReadFile("/proc/pressure/" + name) })
		if err == nil {
			*into[0], *into[1], err = parsePressure(text)
		}
		if err != nil {
			return Pressure{}, fmt.Errorf("cannot read %s pressure: %w", name, err)
		}
	}
	return p, nil
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
