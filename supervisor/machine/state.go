package machine

import (
	"time"

	"sglaunch/internal/shim/wire"
	"sglaunch/phases"
)

// State is where a launch stands. The phases of the server's start all lie
// inside Starting; see design.md for the picture.
type State string

// The states of a launch.
const (
	StateIdle      State = "idle"
	StatePreflight State = "preflight" // checks before anything is touched
	StatePatching  State = "patching"  // source patches are being applied
	StateStarting  State = "starting"  // the server was spawned and is not ready
	StateChecking  State = "checking"  // it said that it is ready; its answers are looked at
	StateUp        State = "up"        // it is announced
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
	OutcomeCrashed   Outcome = "crashed"   // the server, or a process it needs, died or failed
	OutcomeHung      Outcome = "hung"      // killed as stuck
	OutcomeTimedOut  Outcome = "timed_out" // over a given limit though moving
	OutcomeStopped   Outcome = "stopped"   // asked, by us or by somebody else; or a command that is no SGLang server has come to its end
	OutcomeUnhealthy Outcome = "unhealthy" // failed after ready, or its patch had no effect
	OutcomeRefused   Outcome = "refused"   // never spawned
)

// run is what is known of the current attempt. It is made anew for each. Its
// fields are exported for the snapshot alone.
type run struct {
	Patches    []ActivePatch // in force
	Odd        []string      // what differs, in this attempt, from what was asked for
	SpawnAsked time.Time     // zero = nothing was asked, or it was answered
	SpawnedAt  time.Time
	Server     *wire.Proc

	Phase       phases.Phase // of the launch: its slowest rank
	PhaseAt     time.Time
	ReadyAt     time.Time
	CheckAsked  time.Time // its answers are looked at since
	AnnouncedAt time.Time
	Corrupt     bool // its answers are wrong
	SGLang      bool // a line that only SGLang prints was seen
	Activity    string
	Healthy     bool // served long enough for budgets to start anew

	Heard   time.Time // last fact from the output
	Moved   time.Time // last proof of progress, by any source
	MovedBy string
	Quiet   time.Duration // longest stretch of the phase in which nothing moved
	Reading Activity      // the newest reading of the sources
	ReadAt  time.Time
	Memory  memoryNews
	Cores   float64              // that the tree kept busy between the last two readings
	Warned  map[string]bool      // bounds that have passed and were only told
	Told    map[string]time.Time // when a rule's line was last told to a person

	Fatal   *phases.Observation // SGLang's own fatal line, not refuted since
	FatalAt time.Time
	Gone    *RankGone // a rank that died while the server lives on
	GoneAt  time.Time
	Unwell  time.Time // of the first bad HTTP answer since a good one
	Bad     string    // that answer
	Drain   time.Time // an orderly shutdown was begun that we did not ask for

	Ending    bool          // the end of the attempt has begun
	Asked     bool          // because somebody asked
	Restart   *RestartAsked // the next attempt was asked for
	Signalled bool          // we have signalled a living server: what it prints now is our doing
	Outcome   Outcome
	Cause     string
	Proven    bool   // Cause comes from a better source than the output
	Person    bool   // established: no relaunch helps, a person is needed
	Culprit   string // patch that is itself at fault
	Idle      bool   // it hung with neither CPU nor GPU at work: a lock, or a peer
	Why       string // one sentence
	Said      string // of it, to a person, as the verdict
	Exited    *wire.Status
	Unasked   bool // it exited before anybody here asked for it
	TreeGone  bool
	HearUntil time.Time // the rest of the output is not waited for any longer
	Drained   bool
	Diagnosis Diagnosis
	// Neighbours are who else held memory of its GPUs when it failed.
	Neighbours []Neighbour
	Held       string // who holds what did not come free; ends the launch
	Patchless  string // why a patch was not applied, proven or restored; ends the launch
	Spoilt     bool   // Patchless: a file was not restored
}

// ready reports whether the server has said that it is ready.
func (r *run) ready() bool { return !r.ReadyAt.IsZero() }

// announced reports whether others may rely on the server.
func (r *run) announced() bool { return !r.AnnouncedAt.IsZero() }

// spawning reports whether a server was asked for and not answered for.
func (r *run) spawning() bool { return !r.SpawnAsked.IsZero() }

// activeNames lists the patches in force.
func (r *run) activeNames() []string {
	var names []string
	for _, p := range r.Patches {
		names = append(names, p.Name)
	}
	return names
}
