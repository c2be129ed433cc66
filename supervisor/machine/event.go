package machine

import (
	"encoding/json"
	"fmt"
	"time"

	"sglaunch/internal/shim/wire"
	"sglaunch/phases"
)

// Event is one fact, in the one order that the loop gives. Everything that the
// machine knows came in as an event; the journal holds them all.
type Event struct {
	Seq     uint64    // place in the one order, given by the loop
	At      time.Time // when the fact was learnt
	Attempt int       // the attempt it speaks of; 0 = the launch itself
	Roll    float64   // a random number in [0,1) for this step: jitter comes from here
	Body    Body
}

// Body is the content of an event. The set is sealed: the machine's switch
// knows every one.
type Body interface{ body() }

// Begin is the first event of every launch, with what history knows.
type Begin struct {
	LastGood *LastGood `json:"last_good,omitempty"`
	Earlier  *Earlier  `json:"earlier,omitempty"`
}

// LastGood is the newest launch of this server that served.
type LastGood struct {
	Patches []string `json:"patches,omitempty"` // that were in force
	// Changed: something else than the patches differs too (command,
	// versions, machine), so that a patch cannot be blamed for being new.
	Changed bool `json:"changed,omitempty"`
	// Differs says, in words, what a person has changed since that answers may
	// suffer from: flags, environment, versions, an autotune cache.
	Differs []string `json:"differs,omitempty"`
}

// Earlier is what a launch that gave up or died leaves to the next one of the
// same server, so that a service manager's restart does not renew budgets.
type Earlier struct {
	Spawns []time.Time `json:"spawns,omitempty"`
	Cause  string      `json:"cause,omitempty"` // fingerprint of the newest cause
	Same   int         `json:"same,omitempty"`  // how often in a row
}

// Resumed tells that a new supervisor took over, with what the shim knows.
type Resumed struct {
	Restarts int          `json:"restarts"`
	Attempt  int          `json:"attempt"` // newest that the shim spawned; 0 = none
	Server   *wire.Proc   `json:"server,omitempty"`
	Exited   *wire.Status `json:"exited,omitempty"`
	TreeGone bool         `json:"tree_gone,omitempty"`
}

// Preflighted carries the result of the checks before a spawn.
type Preflighted struct {
	Refused string `json:"refused,omitempty"` // why a start is certain to fail; "" = go
	Cause   string `json:"cause,omitempty"`   // of the refusal: port_in_use, model_path_missing, ...
	// Memory is what the memory groups around the launch count before the spawn.
	Memory []MemoryGroup `json:"memory,omitempty"`
}

// Patched tells that the source patches are where policy wants them.
type Patched struct {
	Active  []ActivePatch `json:"active,omitempty"`  // in force in this attempt
	Skipped []string      `json:"skipped,omitempty"` // not applied, each with its reason
}

// ActivePatch is a patch that is on disk during an attempt.
type ActivePatch struct {
	Name  string   `json:"name"`
	Files []string `json:"files"`
	Proof string   `json:"proof,omitempty"` // the phase that it enables
	// OnUnproven is warn, relaunch or fail.
	OnUnproven string `json:"on_unproven,omitempty"`
}

// PatchRefused tells that a patch could not be applied and policy forbids to
// run without it.
type PatchRefused struct {
	Reason string `json:"reason"`
}

// Reverted tells that every patched file is what it was.
type Reverted struct {
	Kept []string `json:"kept,omitempty"` // patches that the user keeps
}

// RevertFailed tells that a file could not be restored; a person is needed.
type RevertFailed struct {
	Reason string `json:"reason"`
}

// Spawned tells that the server runs.
type Spawned struct {
	Proc wire.Proc `json:"proc"`
}

// SpawnFailed tells that the server could not be started at all.
type SpawnFailed struct {
	Reason string `json:"reason"`
	// Passing: the machine was short of something (memory, processes) and
	// may not be the next time.
	Passing bool `json:"passing,omitempty"`
}

// Seen is one fact learnt from the output.
type Seen struct {
	phases.Observation
}

// Proven is the verdict on whether a patch took effect.
type Proven struct {
	Patch   string `json:"patch"`
	Effect  string `json:"effect"` // effective, partial, not_expected, ineffective, unknown
	Reason  string `json:"reason,omitempty"`
	Enforce bool   `json:"enforce,omitempty"` // on_unproven applies: the launch expected an effect
}

// Answered is the result of an HTTP probe that changed something: the first
// good answer, the first bad one after good ones, and the other way round.
type Answered struct {
	Endpoint string `json:"endpoint"`
	Status   int    `json:"status"` // 0 = no answer
	Ready    bool   `json:"ready"`  // the server works: before ready it proves readiness where the output cannot
	// Bad, after ready, says what is wrong with the answer: "no answer within
	// 20s", "503". A long prefill looks the same, so it is never acted on alone.
	Bad string `json:"bad,omitempty"`
}

// Checked is what a look at the answers of a ready server has found.
type Checked struct {
	Answers int     `json:"answers"`
	Tokens  int     `json:"tokens"`            // of all together
	Asked   int     `json:"asked"`             // tokens that each might have at most
	Faulty  int     `json:"faulty,omitempty"`  // wrong by themselves
	Variety float64 `json:"variety,omitempty"` // see answers.Figures
	Corrupt string  `json:"corrupt,omitempty"` // why they are wrong; "" = nothing shows
	// Undone says why not all were given; it proves nothing.
	Undone string `json:"undone,omitempty"`
	// Silent: the server took the request and gave no answer at all in time.
	Silent bool `json:"silent,omitempty"`
	// Sees is the smallest share of wrong answers that would have shown with
	// Confidence.
	Sees       float64 `json:"sees,omitempty"`
	Confidence float64 `json:"confidence,omitempty"`
}

// Working tells that the announced server works on requests that are none of
// ours.
type Working struct{}

// RankGone tells that a process that the server needs has died.
type RankGone struct {
	Rank   string       `json:"rank"`
	Proc   wire.Proc    `json:"proc"`
	Status *wire.Status `json:"status,omitempty"` // where it could still be read
}

// Hardware is news from driver or kernel about a GPU of the launch.
type Hardware struct {
	GPU    int    `json:"gpu"`
	Xid    int    `json:"xid,omitempty"`
	Lost   bool   `json:"lost,omitempty"`
	Person bool   `json:"person,omitempty"` // no relaunch cures it
	Text   string `json:"text"`
}

// SourceShim is the one source whose troubles come as sentences: the shim tells what
// it cannot do, and is not silent.
const SourceShim = "shim"

// SourceLost tells that a source of facts is silent; it is news, not a fault.
type SourceLost struct {
	Source string `json:"source"`
	Reason string `json:"reason"`
}

// sentence is for a person.
func (b SourceLost) sentence() string {
	if b.Source == SourceShim {
		return b.Reason
	}
	return fmt.Sprintf("%s is silent: %s", b.Source, b.Reason)
}

// Exited tells how the server's first process ended.
type Exited struct {
	Status wire.Status `json:"status"`
}

// Hearing tells that of the output of a server that has ended some more was read:
// a supervisor may be behind. It comes at most once a second.
type Hearing struct {
	Bytes int64 `json:"bytes"` // read in all
}

// Drained tells that no more output comes, with what the output says in all.
type Drained struct {
	Bytes     int64     `json:"bytes"`
	Cut       bool      `json:"cut,omitempty"`
	Diagnosis Diagnosis `json:"diagnosis"`
}

// TreeGone tells that no process of the attempt is left.
type TreeGone struct{}

// TreeLeft names processes that would not go.
type TreeLeft struct {
	Procs []wire.Proc `json:"procs,omitempty"`
}

// Evidence tells that the evidence of a failure is written.
type Evidence struct {
	Dir        string      `json:"dir,omitempty"`
	Diagnosis  Diagnosis   `json:"diagnosis"`
	Neighbours []Neighbour `json:"neighbours,omitempty"`
	// Stacks says where the ranks stand, Suspects are those that stand
	// elsewhere than the many who wait. Hung: all stood still for seconds.
	Stacks   string   `json:"stacks,omitempty"`
	Suspects []string `json:"suspects,omitempty"`
	Hung     bool     `json:"hung,omitempty"`
	// Lock says, in words, which compile lock is waited for; "" = none is
	// known to be.
	Lock string `json:"lock,omitempty"`
	// Stale says which compile locks stand though nobody holds them.
	Stale string `json:"stale,omitempty"`
	// Killed is the kernel's word that it ended a process of the attempt for
	// want of memory.
	Killed string `json:"killed,omitempty"`
	// Memory is the last reading of the server's memory groups.
	Memory []MemoryGroup `json:"memory,omitempty"`
}

// Released tells that memory and ports of the attempt are free again.
type Released struct {
	Took string `json:"took,omitempty"`
}

// NotReleased tells what still holds them, and who, if it can be known.
type NotReleased struct {
	Holder string `json:"holder"`
	// Foreign: what holds the resource is not ours; waiting may help.
	Foreign bool `json:"foreign,omitempty"`
}

// StopAsked tells that a person or a service manager wants the end.
type StopAsked struct {
	By    string `json:"by"`
	Force bool   `json:"force,omitempty"` // no more drain
}

// RestartAsked tells that a person wants the server anew: an orderly end, and
// the next attempt at once.
type RestartAsked struct {
	By string `json:"by"`
}

// Reload carries options that were read again. Those that belong to the server
// that runs (its command, its rungs, what history says of it) stay as they are.
type Reload struct {
	By      string  `json:"by"`
	Options Options `json:"options"`
	Text    string  `json:"text"` // what has changed, for a person
}

// Tick is the passing of the machine's deadline.
type Tick struct{}

// Diagnosis is what the output says in all: the root cause, if any.
type Diagnosis struct {
	SGLang     bool     `json:"sglang"` // a line that only SGLang prints was seen
	Failed     bool     `json:"failed,omitempty"`
	Drain      bool     `json:"drain,omitempty"` // an orderly shutdown was begun
	Cause      string   `json:"cause,omitempty"`
	Confidence string   `json:"confidence,omitempty"` // high, medium, low
	Rank       string   `json:"rank,omitempty"`
	Line       int      `json:"line,omitempty"`
	Text       string   `json:"text,omitempty"`
	Frames     []string `json:"frames,omitempty"` // source files of the root's traceback
	Phase      string   `json:"phase,omitempty"`
	// Settings are values that the server printed about itself, by flag
	// ("--mem-fraction-static": "0.88"): where the command line names none,
	// a rung scales these.
	Settings map[string]string `json:"settings,omitempty"`
}

func (Begin) body()        {}
func (Resumed) body()      {}
func (Preflighted) body()  {}
func (Patched) body()      {}
func (PatchRefused) body() {}
func (Reverted) body()     {}
func (RevertFailed) body() {}
func (Spawned) body()      {}
func (SpawnFailed) body()  {}
func (Seen) body()         {}
func (Proven) body()       {}
func (Answered) body()     {}
func (Checked) body()      {}
func (Working) body()      {}
func (Activity) body()     {}
func (RankGone) body()     {}
func (Hardware) body()     {}
func (SourceLost) body()   {}
func (Exited) body()       {}
func (Hearing) body()      {}
func (Drained) body()      {}
func (TreeGone) body()     {}
func (TreeLeft) body()     {}
func (Evidence) body()     {}
func (Released) body()     {}
func (NotReleased) body()  {}
func (StopAsked) body()    {}
func (RestartAsked) body() {}
func (Reload) body()       {}
func (Tick) body()         {}

// bodies names every body for the journal. A name is never reused.
var bodies = registry[Body]{
	"begin": new(Begin), "resumed": new(Resumed), "preflighted": new(Preflighted),
	"patched": new(Patched), "patch_refused": new(PatchRefused),
	"reverted": new(Reverted), "revert_failed": new(RevertFailed),
	"spawned": new(Spawned), "spawn_failed": new(SpawnFailed),
	"seen": new(Seen), "proven": new(Proven), "answered": new(Answered),
	"checked": new(Checked), "working": new(Working),
	"activity": new(Activity), "rank_gone": new(RankGone), "hardware": new(Hardware),
	"source_lost": new(SourceLost), "exited": new(Exited), "hearing": new(Hearing), "drained": new(Drained),
	"tree_gone": new(TreeGone), "tree_left": new(TreeLeft), "evidence": new(Evidence),
	"released": new(Released), "not_released": new(NotReleased),
	"stop_asked": new(StopAsked), "restart_asked": new(RestartAsked), "reload": new(Reload), "tick": new(Tick),
}

type eventJSON struct {
	Seq     uint64          `json:"seq"`
	At      time.Time       `json:"at"`
	Attempt int             `json:"attempt,omitempty"`
	Roll    float64         `json:"roll,omitempty"`
	Kind    string          `json:"event"`
	Body    json.RawMessage `json:"body,omitempty"`
}

// Named returns the name of the event's body in the journal, and its JSON.
func (e Event) Named() (kind string, body json.RawMessage, err error) { return bodies.encode(e.Body) }

// MarshalJSON writes the event with the name of its body.
func (e Event) MarshalJSON() ([]byte, error) {
	kind, body, err := e.Named()
	if err != nil {
		return nil, err
	}
	return json.Marshal(eventJSON{e.Seq, e.At, e.Attempt, e.Roll, kind, body})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (e *Event) UnmarshalJSON(data []byte) error {
	var in eventJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	body, err := bodies.decode(in.Kind, in.Body)
	if err != nil {
		return fmt.Errorf("cannot read event %d: %w", in.Seq, err)
	}
	*e = Event{in.Seq, in.At, in.Attempt, in.Roll, body}
	return nil
}
