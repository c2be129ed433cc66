package preflight

import (
	"fmt"
	"time"

	"sglaunch/internal/gpu"
)

// Status of a check.
type Status string

// The values of Status.
const (
	OK   Status = "ok"
	Warn Status = "warn"
	Fail Status = "fail"
)

// Check is what one look found. A name may occur several times.
type Check struct {
	Name   string        `json:"name"`
	Status Status        `json:"status"`
	Found  string        `json:"found"`            // one sentence
	Advice string        `json:"advice,omitempty"` // what to do; "" where nothing is to be done
	Cause  string        `json:"cause,omitempty"`  // of the catalogue, where the check fails
	Took   time.Duration `json:"took_ns"`
}

// Input is all that the checks may look at.
type Input struct {
	Argv     []string
	Env      []string // the server's: NAME=value
	Dir      string   // where the server is started
	StateDir string   // of sglaunch; must take logs

	GPUs    *gpu.Sample // with process lists; nil where nobody could ask
	Devices []string    // UUIDs configured; empty = from the command
	Patched bool        // source patches are to be applied
	Blind   bool        // the process lists do not show everybody: a container

	Limit time.Duration // for each check; 0 = 10 s
}

// Failed returns the checks that failed.
func Failed(checks []Check) []Check {
	var failed []Check
	for _, c := range checks {
		if c.Status == Fail {
			failed = append(failed, c)
		}
	}
	return failed
}

// fine, warn and fail make the results of a check; Run adds its name.

func fine(format string, args ...any) Check {
	return Check{Status: OK, Found: fmt.Sprintf(format, args...)}
}

func warn(advice, format string, args ...any) Check {
	return Check{Status: Warn, Found: fmt.Sprintf(format, args...), Advice: advice}
}

func fail(cause, advice, format string, args ...any) Check {
	return Check{Status: Fail, Cause: cause, Found: fmt.Sprintf(format, args...), Advice: advice}
}

// size writes bytes for people.
func size(bytes uint64) string {
	const unit = 1024
	value, steps := float64(bytes), 0
	for value >= unit && steps < 4 {
		value /= unit
		steps++
	}
	name := []string{"B", "KiB", "MiB", "GiB", "TiB"}[steps]
	if steps == 0 || value >= 100 {
		return fmt.Sprintf("%.0f %s", value, name)
	}
	return fmt.Sprintf("%.1f %s", value, name)
}
