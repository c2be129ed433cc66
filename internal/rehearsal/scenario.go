package rehearsal

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
)

// scenariosJSON is read by both sides: here for the names, by the server for
// what to do at which cue.
//
//go:embed python/sglang_rehearsal/scenarios.json
var scenariosJSON []byte

// Scenario is a named way for a launch to go.
type Scenario struct {
	Name    string `json:"name"`
	About   string `json:"about"`             // one sentence: what happens
	Version string `json:"version,omitempty"` // of SGLang that shows it; "" means DefaultVersion

	// AfterReady says that the misfortune comes when the server is ready; the
	// others that become ready stay so.
	AfterReady bool `json:"after_ready,omitempty"`

	// Tuning says that the misfortune depends on the server's arguments: it is
	// made for a tuner, which tries several.
	Tuning bool `json:"tuning,omitempty"`

	// Starts bounds the scenario to the first so many starts on a stage; later
	// ones are healthy. 0 means every start.
	Starts int `json:"-"`
}

// Once is the scenario for the first start only: crash once, then be healthy.
func (sc Scenario) Once() Scenario {
	sc.Starts = 1
	return sc
}

// Scenarios lists all, in the order of a launch's life.
func Scenarios() []Scenario {
	var all []Scenario
	if err := json.Unmarshal(scenariosJSON, &all); err != nil {
		panic("the embedded scenarios do not parse: " + err.Error()) // held by a test
	}
	return all
}

// Find returns the scenario of that name.
func Find(name string) (Scenario, error) {
	var known []string
	for _, sc := range Scenarios() {
		if sc.Name == name {
			return sc, nil
		}
		known = append(known, sc.Name)
	}
	return Scenario{}, fmt.Errorf("cannot play %q: the scenarios are %s", name, strings.Join(known, ", "))
}
