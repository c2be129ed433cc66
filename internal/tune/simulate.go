package tune

import (
	"fmt"
	"slices"
	"strings"
)

// SGLang can be made fast with answers that mean nothing: for its own benchmarks
// and tests. What is tuned with that must never serve.

// simulating are the parts of a variable's name by which it makes up what a model
// would compute.
//
//   - SIMULATE: drafted tokens are accepted by a coin (SIMULATE_ACC_LEN up to 0.5.3,
//     SGLANG_SIMULATE_ACC_* since 0.5.4), experts are dealt out in turn
//     (SGLANG_SIMULATE_UNIFORM_EXPERTS, _ROUND_ROBIN_EXPERTS since 0.5.18).
//   - HISPARSE_SKIP_IO: "GARBAGE OUTPUT -- benchmarking only" (since 0.5.18).
var simulating = []string{"SIMULATE", "HISPARSE_SKIP_IO"}

// simulatingFlags are flags that do so with a value that holds the word.
var simulatingFlags = map[string]string{
	"--load-format":                     "dummy",             // random weights
	"--ep-dispatch-algorithm":           "fake",              // tokens to any expert
	"--disaggregation-transfer-backend": "fake",              // no KV cache is moved
	"--json-model-override-args":        "num_hidden_layers", // a part of the model
}

// simulated names what makes up answers in a command and its environment.
func simulated(argv, env []string) (names []string) {
	for _, kv := range env {
		if name, value, _ := strings.Cut(kv, "="); simulatesBy(name, value) {
			names = append(names, name)
		}
	}
	for i, arg := range argv {
		flag, value, glued := strings.Cut(arg, "=")
		if !glued && i+1 < len(argv) {
			value = argv[i+1]
		}
		if word, is := simulatingFlags[flag]; is && strings.Contains(value, word) {
			names = append(names, flag+" "+value)
		}
	}
	return names
}

// simulates tells whether an axis at a value makes up answers.
func simulates(axis string, v Value) bool {
	if name, is := strings.CutPrefix(axis, "$"); is {
		return v.Kind != Absent && simulatesBy(name, v.Text)
	}
	word, is := simulatingFlags[axis]
	return is && strings.Contains(v.Text, word)
}

// simulatesBy tells whether a variable is one of them, and on. Nothing, 0, false
// and what is below 0 are off.
func simulatesBy(name, value string) bool {
	is := slices.ContainsFunc(simulating, func(part string) bool { return strings.Contains(name, part) })
	value = strings.ToLower(strings.TrimSpace(value))
	return is && !strings.HasPrefix(value, "-") && !slices.Contains([]string{"", "0", "0.0", "false", "no", "off"}, value)
}

// simulations are those of the base and of every trial, each once.
func (p *Plan) simulations(o Outlook) (names []string) {
	for _, name := range simulated(o.Command, o.Env) {
		names = append(names, name+" of the base")
	}
	for _, t := range p.Trials {
		for axis, v := range t.Set {
			if simulates(axis, v) {
				names = append(names, settingsText(map[string]Value{axis: v}))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// refuseSimulations: what may serve must mean what it says. A test may make up
// what it likes, and is called one.
func (p *Plan) refuseSimulations(o Outlook) {
	for _, name := range p.simulations(o) {
		if p.Study.Test {
			p.Warnings = append(p.Warnings, fmt.Sprintf("a test: with %s the answers mean nothing", name))
		} else {
			p.Problems = append(p.Problems, fmt.Sprintf("%s makes a server fast and its answers wrong: it has no place in what may serve; test = true lets it through", name))
		}
	}
}
