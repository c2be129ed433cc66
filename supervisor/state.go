package supervisor

import (
	"time"

	"sglaunch/internal/shim/wire"
	"sglaunch/phases"
)

// State is where a launch stands. The phases of the server's start all lie
// inside Starting; see design.md section 5 for the picture.
type State string

// The states of a launch.
const (
	StateIdle      State = "idle"
	StatePreflight State = "preflight" // checks before anything is touched
	StatePatching  State = "patching"  // source patches are being applied
	StateStarting  State = "starting"  // the server was spawned and is not ready
	StateUp        State = "up"        // it said that it is ready
	StateEvidence  State = "evidence"  // it failed; what can be known is written down
	StateStopping  State = "stopping"  // it was asked to end
	StateKilling   State = "killing"   // everything that belongs to it is being ended
	StateReleasing State = "releasing" // GPU memory and ports are coming back
	StateReverting State = "reverting" // patched files are being restored
	StateBackoff   State = "backoff"   // the pause before the next attempt
	StateEnded     State = "ended"
)

// Outcome is how an attempt ended.
type Outcome string

// The outcomes of an attempt, as the vocabulary names them.
const (
	OutcomeCrashed   Outcome = "crashed"
	OutcomeHung      Outcome = "hung"
	OutcomeTimedOut  Outcome = "timed_out"
	OutcomeStopped   Outcome = "stopped"
	OutcomeUnhealthy Outcome = "unhealthy"
	OutcomeRefused   Outcome = "refused"
)

// run is what is known of the current attempt. It is made anew for each.
type run struct {
	spawning  bool // Spawn was asked for and not answered
	spawnedAt time.Time
	server    *wire.Proc
	patches   []ActivePatch

	phase   phases.Phase // of the launch: its slowest rank
	phaseAt time.Time
	reached phases.Phase // the furthest
	readyAt time.Time
	healthy bool // served long enough for budgets to start anew

	moved   time.Time // last proof of progress, by any source
	movedBy string
	seen    Activity // the newest reading and when it was taken
	seenAt  time.Time
	told    time.Time // when progress was last reported to a person
	warned  bool      // "would have killed" was told in this phase

	fatal   *phases.Observation // SGLang's own fatal line, nothing moved since
	fatalAt time.Time
	gone    *RankGone // a rank that died while the server lives on
	goneAt  time.Time
	drain   bool // drain lines were seen

	ending    bool // the end of the attempt has begun
	asked     bool // because somebody asked
	outcome   Outcome
	cause     string
	person    bool   // established: no relaunch helps, a person is needed
	why       string // one sentence
	exited    *wire.Status
	treeGone  bool
	goneSince time.Time
	drained   bool
	diagnosis Diagnosis
	left      []wire.Proc
	held      string // who holds what did not come free, when that ends the launch
	refusal   int    // exit code that this attempt forces, 0 = policy decides
}

// ready reports whether the server has said that it is ready.
func (r *run) ready() bool { return !r.readyAt.IsZero() }

// activeNames lists the patches in force.
func (r *run) activeNames() []string {
	var names []string
	for _, p := range r.patches {
		names = append(names, p.Name)
	}
	return names
}
