package phases

import "fmt"

// Phase is a stretch of a server's start, in the order of a usual start. The
// names are an interface to scripts; they are never renamed.
type Phase int

// The phases in order. A phase may be absent, and a second pass (draft model,
// prefill after decode) does not move a launch back.
const (
	Starting        Phase = iota // the process was spawned
	DistributedInit              // torch distributed and model-parallel groups
	LoadingWeights               // weights are downloaded or read
	WeightsLoaded                // weights are in; repacking, barrier, draft model
	KVCache                      // KV cache and memory pool are sized
	Autotune                     // FlashInfer or another autotune runs
	GraphCapture                 // graphs are captured; JIT compiles inside count
	Warmup                       // HTTP is up or a warm-up request runs
	Ready                        // the server said that it is ready
	Serving                      // it works on requests after ready
)

var phaseNames = [...]string{
	"starting", "distributed_init", "loading_weights", "weights_loaded", "kv_cache",
	"autotune", "graph_capture", "warmup", "ready", "serving",
}

// Phases lists every phase in order.
func Phases() []Phase {
	all := make([]Phase, len(phaseNames))
	for i := range all {
		all[i] = Phase(i)
	}
	return all
}

func (p Phase) String() string {
	if p < 0 || int(p) >= len(phaseNames) {
		return fmt.Sprintf("phase(%d)", int(p))
	}
	return phaseNames[p]
}

// ParsePhase is the inverse of String.
func ParsePhase(name string) (Phase, error) {
	for i, n := range phaseNames {
		if n == name {
			return Phase(i), nil
		}
	}
	return 0, fmt.Errorf("cannot use %q as a phase: known are %v", name, phaseNames)
}

// MarshalText writes the name, so that JSON and TOML hold names, not numbers.
func (p Phase) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads a name.
func (p *Phase) UnmarshalText(text []byte) error {
	parsed, err := ParsePhase(string(text))
	if err != nil {
		return err
	}
	*p = parsed
	return nil
}
