package tune

import (
	"time"

	"sglaunch/patch"
)

// Study is a whole tune.toml: what is varied, what is measured, and what is
// asked. Start from DefaultStudy.
type Study struct {
	Name  string `toml:"name" json:"name"`             // of the night: its records and reports
	Base  string `toml:"base" path:"any" json:"base"`  // the launch.toml that is varied; as it is, it is the baseline
	Notes string `toml:"notes" json:"notes,omitempty"` // for the report
	Test  bool   `toml:"test" json:"test,omitempty"`   // answers may be made up: nothing of it may serve

	Search    string `toml:"search" json:"search"`             // one-at-a-time | product | halving
	Repeats   int    `toml:"repeats" json:"repeats"`           // fresh launches of each finalist, each beside one of the baseline
	Finalists int    `toml:"finalists" json:"finalists"`       // so many of the best are launched again
	Partial   bool   `toml:"partial" json:"partial,omitempty"` // begin though not every trial fits before the deadline
	Prune     bool   `toml:"prune" json:"prune"`               // a failure may skip trials that would fail too, and what cannot make a candidate is measured less

	Deadline      Deadline `toml:"deadline" json:"deadline"`             // a server serves by then
	Timezone      string   `toml:"timezone" json:"timezone,omitempty"`   // of a deadline on the clock; "" = the machine's
	Promote       string   `toml:"promote" json:"promote"`               // ask | serve
	Caches        string   `toml:"caches" json:"caches"`                 // shared | per-patch-set | cold
	MinimumEffect float64  `toml:"minimum_effect" json:"minimum_effect"` // smaller gains are not worth a change: 0.02 = 2 %
	Confidence    float64  `toml:"confidence" json:"confidence"`         // of the verdict, over all finalists together

	Objective   Objective       `toml:"objective" json:"objective"`
	Constraints []Constraint    `toml:"constraint" json:"constraints,omitempty"`
	Baseline    Baseline        `toml:"baseline" json:"baseline"`
	Axes        map[string]Axis `toml:"axis" json:"axes,omitempty"`
	Trials      []Explicit      `toml:"trial" json:"trials,omitempty"`
	Excludes    []Exclude       `toml:"exclude" json:"excludes,omitempty"`
	Loads       []Load          `toml:"load" json:"loads"`
	Patches     []patch.Patch   `toml:"patch" json:"patches,omitempty"` // that the patches axis names and the base does not have
	Probe       Probe           `toml:"probe" json:"probe"`
	Gate        Gate            `toml:"gate" json:"gate"`
	Quality     Questions       `toml:"quality" json:"quality,omitzero"`
	Limits      Limits          `toml:"limits" json:"limits"`
	Expect      Estimate        `toml:"expect" json:"expect"`
	Takeover    Takeover        `toml:"takeover" json:"takeover"`
}

// The searches.
const (
	OneAtATime = "one-at-a-time" // each value of each axis alone
	Product    = "product"       // every combination
	Halving    = "halving"       // every combination once, the best third twice more
)

// What becomes of a winner in the morning.
const (
	PromoteAsk   = "ask"   // the baseline serves, the winner lies beside it
	PromoteServe = "serve" // the winner serves
)

// Which compile and autotune caches a trial uses.
const (
	CachesShared   = "shared"        // those of the machine
	CachesPerPatch = "per-patch-set" // one set for each set of patches
	CachesCold     = "cold"          // empty ones for every launch
)

// Objective is what a launch is judged by. A rate is taken at the best point
// that keeps the constraints, a latency as the mean of all points.
type Objective struct {
	Metric string `toml:"metric" json:"metric"`       // output_throughput, p99_ttft_ms, ...: see Metrics
	Load   string `toml:"load" json:"load,omitempty"` // on this load alone; "" = the geometric mean over all
}

// judges tells whether a load is one that a launch is judged by.
func (o Objective) judges(load string) bool { return o.Load == "" || o.Load == load }

// Constraint bounds a metric at every point that counts. Zero is no bound.
type Constraint struct {
	Metric string  `toml:"metric" json:"metric"`
	Load   string  `toml:"load" json:"load,omitempty"` // "" = every load
	Max    float64 `toml:"max" json:"max,omitempty"`
	Min    float64 `toml:"min" json:"min,omitempty"`
}

// Baseline says how often the baseline is launched between trials.
type Baseline struct {
	Every  int           `toml:"every" json:"every"`   // so many trials
	Within time.Duration `toml:"within" json:"within"` // or so long
}

// Axis is one thing that is varied: a flag ("--mem-fraction-static"), a
// variable of the environment ("$NAME") or the set of patches ("patches").
type Axis struct {
	Values   []Value `toml:"values" json:"values"`
	Monotone string  `toml:"monotone" json:"monotone,omitempty"` // memory-up, ...: see Monotones; "" = by its name, "none"
	Category string  `toml:"category" json:"category,omitempty"` // backend | quantization | kv-dtype; "" = by its name, "none"
	Risk     int     `toml:"risk" json:"risk,omitempty"`         // 0 to 9: riskier trials come later
}

// PatchesAxis is the name of the axis over sets of patches. Its values are
// names with spaces between them; "" is no patch.
const PatchesAxis = "patches"

// Explicit is one [[trial]] that a person wants tried beside the axes.
type Explicit struct {
	Name string           `toml:"name" json:"name,omitempty"`
	Set  map[string]Value `toml:"set" json:"set"` // by axis name; what is left out is as in the base
	Risk int              `toml:"risk" json:"risk,omitempty"`
}

// Exclude removes every trial that has all of these settings.
type Exclude struct {
	Set map[string]Value `toml:"set" json:"set"`
	Why string           `toml:"why" json:"why,omitempty"` // for the report
}

// Load is one shape of requests at one or more concurrencies.
type Load struct {
	Name        string        `toml:"name" json:"name"`
	Bench       string        `toml:"bench" json:"bench"`                           // sglang.bench_serving | sglang.bench_one_batch_server | vllm | own
	Command     []string      `toml:"command" path:"argv" json:"command,omitempty"` // argv; [] = the usual one of the bench. {host} {port} {model} {concurrency} {requests} {input} {output} {result} {seed} are filled in
	Args        []string      `toml:"args" json:"args,omitempty"`                   // added to the usual command
	Input       int           `toml:"input" json:"input,omitempty"`                 // tokens of a prompt
	Output      int           `toml:"output" json:"output,omitempty"`               // tokens of an answer
	Concurrency []int         `toml:"concurrency" json:"concurrency"`               // ascending
	Requests    int           `toml:"requests" json:"requests,omitempty"`           // of each point; 0 = eight times the concurrency, at least 32
	Limit       time.Duration `toml:"limit" json:"limit,omitempty"`                 // of one point; 0 = limits.load
	CPUs        string        `toml:"cpus" json:"cpus,omitempty"`                   // that the client may use: "8-15,24"; "" = those away from the server's GPUs; "any"
	Real        bool          `toml:"real" json:"real,omitempty"`                   // the prompts are those of users, not random tokens
}

// Probe is the worst case for memory that a finalist has to stand: the longest
// prompts, as many at once as the server takes. Concurrency 0 leaves it out.
type Probe struct {
	Load        string `toml:"load" json:"load,omitempty"` // whose bench is used; "" = the first
	Input       int    `toml:"input" json:"input,omitempty"`
	Output      int    `toml:"output" json:"output,omitempty"`
	Concurrency int    `toml:"concurrency" json:"concurrency,omitempty"`
	Requests    int    `toml:"requests" json:"requests,omitempty"`
}

// Questions are asked of each launch before it is measured, to hold its answers
// against the baseline's. The zero value asks nothing.
type Questions struct {
	Answers   int           `toml:"answers" json:"answers,omitempty"`       // to fixed prompts; 0 = none
	Tokens    int           `toml:"tokens" json:"tokens,omitempty"`         // of each, at most
	Limit     time.Duration `toml:"limit" json:"limit,omitempty"`           // of all
	Eval      []string      `toml:"eval" path:"argv" json:"eval,omitempty"` // argv; a command that looks at a server in the screening: status 0 = sound
	EvalLimit time.Duration `toml:"eval_limit" json:"eval_limit,omitempty"`
}

// Gate is what has to hold before a launch.
type Gate struct {
	Temperature int           `toml:"temperature" json:"temperature,omitempty"` // no GPU is hotter, in Celsius; 0 = any
	Wait        time.Duration `toml:"wait" json:"wait"`                         // at most, then it goes on and says so
	Soak        time.Duration `toml:"soak" json:"soak,omitempty"`               // how long at most a rested machine is warmed up by the load; 0 = not at all
}

// Limits bound what one step of a trial may take, and what makes a window of
// measurement invalid.
type Limits struct {
	Start       time.Duration `toml:"start" json:"start"`             // of one start; also bounded by the deadline
	Load        time.Duration `toml:"load" json:"load"`               // of one point
	Quiet       time.Duration `toml:"quiet" json:"quiet"`             // of a bench client that completes nothing
	Failed      float64       `toml:"failed" json:"failed"`           // share of requests that may fail
	Throttled   float64       `toml:"throttled" json:"throttled"`     // share of the window that a GPU may throttle by heat or brake
	Pressure    float64       `toml:"pressure" json:"pressure"`       // share of the window that tasks may stall for CPU, memory or disk
	Client      float64       `toml:"client" json:"client"`           // CPUs that one bench process may use before it is what is measured
	Lag         float64       `toml:"lag" json:"lag"`                 // share of the window that the client may wait for a CPU, or be stopped
	Environment int           `toml:"environment" json:"environment"` // failures in a row that are no trial's fault: the night's trials end
}

// Takeover is the contract by which the night may end a server that runs. All
// of it is proven before the first trial. The zero value takes over nothing.
type Takeover struct {
	Launch string   `toml:"launch" json:"launch,omitempty"`             // name of the sglaunch launch that serves
	Drain  []string `toml:"drain" path:"argv" json:"drain,omitempty"`   // argv; takes it out of its router and returns when it is out
	Return []string `toml:"return" path:"argv" json:"return,omitempty"` // argv; puts what serves in the morning back in
}

// DefaultStudy is the study of an empty file.
func DefaultStudy() Study {
	return Study{
		Search: OneAtATime, Repeats: 3, Finalists: 2, Prune: true,
		Promote: PromoteAsk, Caches: CachesPerPatch,
		MinimumEffect: 0.02, Confidence: 0.95,
		Objective: Objective{Metric: "output_throughput"},
		Baseline:  Baseline{Every: 4, Within: time.Hour},
		Quality:   Questions{Answers: 24, Tokens: 256, Limit: 5 * time.Minute, EvalLimit: 15 * time.Minute},
		Gate:      Gate{Wait: 10 * time.Minute, Soak: 5 * time.Minute},
		Limits: Limits{
			Start: 2 * time.Hour, Load: 30 * time.Minute, Quiet: 3 * time.Minute,
			Throttled: 0.05, Pressure: 0.10, Client: 0.95, Lag: 0.10, Environment: 3,
		},
		Expect: Estimate{Start: 10 * time.Minute, Load: 3 * time.Minute, Release: time.Minute},
	}
}
