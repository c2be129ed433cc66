package machine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Effect is something that the machine wants done. It is performed outside the
// machine, never in the loop; its result comes back as an event. An effect may
// be performed twice (a supervisor that died between effect and result), so
// each is idempotent for its attempt.
type Effect struct {
	Attempt int
	Body    Act
}

// Act is the content of an effect; the set is sealed.
type Act interface{ act() }

// Preflight asks for the checks before a spawn; answered by Preflighted.
type Preflight struct {
	// Beside are neighbours that left no room for the server before: as long
	// as they hold what they held, the next one is certain to fail too.
	Beside []Neighbour `json:"beside,omitempty"`
}

// ApplyPatch asks for the patches, less those under suspicion; answered by
// Patched or PatchRefused.
type ApplyPatch struct {
	Without []string `json:"without,omitempty"`
}

// RevertPatch asks for the original files; answered by Reverted or RevertFailed.
type RevertPatch struct {
	// SetAside: the autotune caches that the attempt has used are put aside,
	// for its answers were wrong.
	SetAside bool `json:"set_aside,omitempty"`
}

// CheckOutput asks the ready server for answers; answered by Checked. It ends
// by itself as soon as the server is signalled.
type CheckOutput struct {
	CheckSize
}

// Spawn asks for the server; answered by Spawned or SpawnFailed. The changes
// are all that rungs have made so far, not only the newest.
type Spawn struct {
	Flags []FlagChange      `json:"flags,omitempty"` // changes of the command line, by rungs
	Env   map[string]string `json:"env,omitempty"`   // additions to the environment, by rungs; see Environ
}

// FlagChange sets one flag of the server's command line.
type FlagChange struct {
	Flag  string `json:"flag"`
	Value string `json:"value"` // "" = the flag stands alone
}

// Private stands, in a value of Spawn.Env, for a directory of the launch's own
// that outlives its attempts. The machine does not know where that is.
const Private = "{private}"

// Environ returns the additions as NAME=value, in order of name, with dir in
// place of Private.
func (s Spawn) Environ(dir string) []string {
	env := make([]string, 0, len(s.Env))
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		env = append(env, name+"="+strings.ReplaceAll(s.Env[name], Private, dir))
	}
	return env
}

// SignalServer sends a signal to the server's first process; what follows from
// it comes as Exited.
type SignalServer struct {
	Sig int `json:"sig"`
}

// KillTree ends everything that belongs to the attempt; answered by TreeGone
// or TreeLeft.
type KillTree struct {
	Limit time.Duration `json:"limit"`
}

// GatherEvidence writes down what can be known about a failure before the
// kill; answered by Evidence.
type GatherEvidence struct {
	Reason string        `json:"reason"`
	Limit  time.Duration `json:"limit"`
	// Twice: what lives is looked at twice, some seconds apart. Where a
	// process stands proves nothing; that it stands there still, does.
	Twice bool `json:"twice,omitempty"`
}

// AwaitRelease waits until the GPU memory and the ports of the attempt are
// free; answered by Released or NotReleased.
type AwaitRelease struct {
	Limit time.Duration `json:"limit"`
}

// Report tells a person and the records one thing. It has no answer.
type Report struct {
	Event  string         `json:"event"` // a name of the vocabulary
	Text   string         `json:"text"`  // one line for a person; "" = for the records alone
	Fields map[string]any `json:"fields,omitempty"`
}

// Finish ends the launch with an exit code.
type Finish struct {
	Code   int    `json:"code"`
	Reason string `json:"reason"`
}

func (Preflight) act()      {}
func (ApplyPatch) act()     {}
func (RevertPatch) act()    {}
func (CheckOutput) act()    {}
func (Spawn) act()          {}
func (SignalServer) act()   {}
func (KillTree) act()       {}
func (GatherEvidence) act() {}
func (AwaitRelease) act()   {}
func (Report) act()         {}
func (Finish) act()         {}

// acts names every effect for the journal. A name is never reused.
var acts = registry[Act]{
	"preflight": new(Preflight), "apply_patch": new(ApplyPatch), "revert_patch": new(RevertPatch),
	"spawn": new(Spawn), "check_output": new(CheckOutput), "signal_server": new(SignalServer), "kill_tree": new(KillTree),
	"gather_evidence": new(GatherEvidence), "await_release": new(AwaitRelease),
	"report": new(Report), "finish": new(Finish),
}

type effectJSON struct {
	Attempt int             `json:"attempt,omitempty"`
	Kind    string          `json:"effect"`
	Body    json.RawMessage `json:"body,omitempty"`
}

// Named returns the name of the effect's act in the journal, and its JSON.
func (e Effect) Named() (kind string, body json.RawMessage, err error) { return acts.encode(e.Body) }

// MarshalJSON writes the effect with the name of its act.
func (e Effect) MarshalJSON() ([]byte, error) {
	kind, body, err := e.Named()
	if err != nil {
		return nil, err
	}
	return json.Marshal(effectJSON{e.Attempt, kind, body})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (e *Effect) UnmarshalJSON(data []byte) error {
	var in effectJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	body, err := acts.decode(in.Kind, in.Body)
	if err != nil {
		return fmt.Errorf("cannot read an effect: %w", err)
	}
	*e = Effect{in.Attempt, body}
	return nil
}
