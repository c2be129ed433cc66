package tune

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// AnyCPU is the word for all CPUs.
const AnyCPU = "any"

// mostCPUs is more than any machine has.
const mostCPUs = 8192

// ParseCPUs reads a list of CPUs as the kernel writes it: "0-3,8".
func ParseCPUs(text string) (cpus []int, err error) {
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		from, err := strconv.Atoi(first)
		to := from
		if err == nil && isRange {
			to, err = strconv.Atoi(last)
		}
		if err != nil || from < 0 || to < from || to >= mostCPUs {
			return nil, errors.New(`it must be numbers and ranges of CPUs, as in "0-3,8"`)
		}
		for cpu := from; cpu <= to; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus), nil
}

// CPUsText writes a list of CPUs as ParseCPUs reads it.
func CPUsText(cpus []int) string {
	var parts []string
	for i := 0; i < len(cpus); {
		last := i
		for last+1 < len(cpus) && cpus[last+1] == cpus[last]+1 {
			last++
		}
		part := strconv.Itoa(cpus[i])
		if last > i {
			part = fmt.Sprintf("%d-%d", cpus[i], cpus[last])
		}
		parts, i = append(parts, part), last+1
	}
	return strings.Join(parts, ",")
}
