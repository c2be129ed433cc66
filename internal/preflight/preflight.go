package preflight

import (
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

// Check is what one look found.
type Check struct {
	Name   string        `json:"name"`
	Status Status        `json:"status"`
	Found  string        `json:"found"`            // one sentence
	Advice string        `json:"advice,omitempty"` // what to do; "" where nothing is to be done
	Cause  string        `json:"cause,omitempty"`  // of the catalogue, where the check fails
	Took   time.Duration `json:"took"`
}

// Input is all that the checks may look at.
type Input struct {
	Argv     []string
	Env      []string // the server's: NAME=value
	Dir      string   // where the server is started
	StateDir string   // of sglaunch; must take logs

	GPUs    *gpu.Sample // with process lists; nil where nobody could ask
	Devices []string    // UUIDs configured; empty = from the command

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
