package tune

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// BaselineID is the ID of the trial that changes nothing.
const BaselineID = "baseline"

// Trial is one configuration: in what it differs from the base.
type Trial struct {
	ID          string           `json:"id"`   // from the settings alone: the same in every night
	Name        string           `json:"name"` // for a person
	Set         map[string]Value `json:"set,omitempty"`
	Risk        int              `json:"risk,omitempty"`
	Fingerprint string           `json:"fingerprint"` // of all that a measurement depends on
}

// Baseline tells whether the trial changes nothing.
func (t Trial) Baseline() bool { return t.ID == BaselineID }

// Flags are the trial's changes of the command line.
func (t Trial) Flags() map[string]Value {
	return t.only(func(name string) bool { return strings.HasPrefix(name, "-") })
}

// Env are its changes of the environment, by the name of the variable.
func (t Trial) Env() map[string]Value {
	env := map[string]Value{}
	for name, v := range t.only(func(name string) bool { return strings.HasPrefix(name, "$") }) {
		env[name[1:]] = v
	}
	return env
}

// Patches is the trial's set of patches; ok is false where it is the base's.
func (t Trial) Patches() (names []string, ok bool) {
	v, ok := t.Set[PatchesAxis]
	return strings.Fields(v.Text), ok
}

func (t Trial) only(keep func(string) bool) map[string]Value {
	part := maps.Clone(t.Set)
	maps.DeleteFunc(part, func(name string, _ Value) bool { return !keep(name) })
	return part
}

// newTrial gives settings their ID and, where it has none, a name.
func newTrial(name string, set map[string]Value, risk int) Trial {
	if len(set) == 0 {
		return Trial{ID: BaselineID, Name: BaselineID}
	}
	if name == "" {
		name = settingsText(set)
	}
	return Trial{ID: "t-" + digest(set)[:8], Name: name, Set: set, Risk: risk}
}

// settingsText writes settings for a person: "--a 1, $B on".
func settingsText(set map[string]Value) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(set)) {
		v := set[name]
		switch {
		case strings.HasPrefix(name, "-") && v.Kind == Alone:
			parts = append(parts, name)
		case strings.HasPrefix(name, "-") && v.Kind == Absent:
			parts = append(parts, "no "+name)
		case strings.HasPrefix(name, "-"):
			parts = append(parts, name+" "+v.String())
		default:
			parts = append(parts, name+"="+v.String())
		}
	}
	return strings.Join(parts, ", ")
}

// Facts are what else a measurement depends on. Where one of them changes
// between two runs of a night, what was measured before does not count.
type Facts struct {
	Base     string            `json:"base,omitempty"`     // digest of the base's command, environment and patches
	Versions map[string]string `json:"versions,omitempty"` // of packages: sglang, torch, flashinfer, ...
	Driver   string            `json:"driver,omitempty"`
	GPUs     []string          `json:"gpus,omitempty"`    // UUIDs
	Model    string            `json:"model,omitempty"`   // path and revision
	Bench    string            `json:"bench,omitempty"`   // clients that do not come with the server: version, or digest
	Patches  map[string]string `json:"patches,omitempty"` // digest by name
}

// Fingerprint names all that a measurement of the trial depends on. Two
// launches with the same one may be compared.
func (s Study) Fingerprint(t Trial, f Facts) string {
	f.GPUs = slices.Sorted(slices.Values(f.GPUs))
	return digest([]any{t.Set, f, s.Loads, s.Caches})[:16]
}

// digest is the hash of a value's JSON, in which maps have their keys sorted.
func digest(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain data of our own
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Estimate is what the steps of a launch are expected to take.
type Estimate struct {
	Start   time.Duration `toml:"start" json:"start"`     // from the spawn until ready
	Load    time.Duration `toml:"load" json:"load"`       // one point
	Release time.Duration `toml:"release" json:"release"` // from the stop until the next launch may begin
}

// Launch is what one launch with so many points takes.
func (e Estimate) Launch(points int) time.Duration {
	return e.Start + time.Duration(points)*e.Load + e.Release
}
