package patch

import (
	"context"
	"errors"
)

var errNotYet = errors.New("not in this version")

// FindInterpreter returns the Python that a server's command will run, without
// running the command.
func FindInterpreter(ctx context.Context, argv []string, dir string, env []string) (Interpreter, error) {
	return Interpreter{}, errNotYet
}

// Plan is what Apply would do, with the hashes it takes as preconditions.
type Plan struct {
	Interpreter Interpreter `json:"interpreter"`
	Targets     []Target    `json:"targets"`
}

// MakePlan looks at every file that the patches name. It writes nothing.
func MakePlan(ctx context.Context, l *Ledger, in Interpreter, patches []Patch) (*Plan, error) {
	return nil, errNotYet
}

// Refused lists the targets whose patch cannot be used.
func (p *Plan) Refused() []Target {
	var refused []Target
	for _, t := range p.Targets {
		if t.Refused {
			refused = append(refused, t)
		}
	}
	return refused
}

// Owner is the process for whose life a patch stays: the one that holds the server.
type Owner struct {
	PID       int    `json:"pid"`
	StartTime uint64 `json:"start_time"` // field 22 of /proc/PID/stat, clock ticks since boot
	BootID    string `json:"boot_id"`
	Launch    string `json:"launch"`
}

// Applied is what Apply did.
type Applied struct {
	Launch string   `json:"launch"`
	Files  []string `json:"files"`         // written, or shared with another launch
	Env    []string `json:"env,omitempty"` // NAME=value, to be added to the server's environment (overlay)
}

// Reverted is what Revert did, by path.
type Reverted struct {
	Launch   string   `json:"launch"`
	Restored []string `json:"restored,omitempty"` // as they were before
	Clean    []string `json:"clean,omitempty"`    // had their original content already
	Leased   []string `json:"leased,omitempty"`   // another launch still runs on them
	Kept     []string `json:"kept,omitempty"`     // revert = "never"
	Drifted  []string `json:"drifted,omitempty"`  // somebody else changed them: left alone
}

// Ledger owns one state directory of patches.
type Ledger struct{ dir string }

// OpenLedger opens, and makes where it is absent, the state directory.
func OpenLedger(dir string) (*Ledger, error) { return &Ledger{dir: dir}, nil }

// Apply puts the plan on disk for one launch, all of it or nothing.
func (l *Ledger) Apply(ctx context.Context, p *Plan, owner Owner) (*Applied, error) {
	return nil, errNotYet
}

// Revert undoes what Apply did for a launch. Call it once the launch's process
// tree is gone.
func (l *Ledger) Revert(ctx context.Context, launch string) (*Reverted, error) {
	return nil, errNotYet
}

// Recover reverts for every launch whose owner is not alive.
func (l *Ledger) Recover(ctx context.Context, alive func(Owner) bool) ([]Reverted, error) {
	return nil, errNotYet
}
