package config

import (
	"time"

	"sglaunch/patch"
	"sglaunch/phases"
)

// Config is a whole launch.toml. Zero values mean what they say; start from
// Default.
type Config struct {
	Server    Server        `toml:"server"`
	Ready     Ready         `toml:"ready" reload:"now"`
	Phases    Phases        `toml:"phases"`
	Patches   []patch.Patch `toml:"patch" about:"[[patch]]: source patches, as a TOML list of tables"`
	Relaunch  Relaunch      `toml:"relaunch" reload:"now"`
	Fallbacks []Fallback    `toml:"fallback" about:"[[fallback]]: rungs of one's own, as a TOML list of tables"`
	Stop      Stop          `toml:"stop" reload:"now"`
	GPU       GPU           `toml:"gpu"`
	Log       Log           `toml:"log"`
	Listen    Listen        `toml:"listen"`
	Hooks     Hooks         `toml:"hooks" reload:"now"`

	// Files is what env_file and phases.rules hold, by path.
	Files Files `toml:"-"`
}

// Files are contents of files, by path.
type Files map[string][]byte

// Server says what is started, and how.
type Server struct {
	Name      string            `toml:"name" about:"of the launch: status, sockets, state; unique on the box"`
	Command   []string          `toml:"command" path:"argv" about:"argv; no shell"`
	Directory string            `toml:"directory" path:"any" about:"working directory; empty: where sglaunch was started"`
	Env       map[string]string `toml:"env" about:"added to the inherited environment"`
	EnvFile   string            `toml:"env_file" path:"any" about:"file of NAME=value lines; env beats it"`
	Python    string            `toml:"python" path:"program" about:"interpreter for patches; empty: found from the command"`
	Stdio     string            `toml:"stdio" oneof:"pty pipe" about:"pipe keeps standard output and error apart"`
	Stdin     string            `toml:"stdin" oneof:"auto null inherit" about:"auto: the terminal if ours is one, else /dev/null"`
}

// Ready says when the server counts as ready.
type Ready struct {
	URL         string        `toml:"url" reload:"" about:"base URL of the server; empty: from --host and --port"`
	Timeout     time.Duration `toml:"timeout" about:"of the whole start"`
	OutputCheck string        `toml:"output_check" oneof:"auto always off" about:"auto: patched, tuned or flag-changed launches"`
	Check       Check         `toml:"check" about:"size of the output check"`
}

// Check is the size of the output check before a launch is announced.
type Check struct {
	Generations int           `toml:"generations" about:"answers that are asked for"`
	Tokens      int           `toml:"tokens" about:"of each generation"`
	BatchSizes  []int         `toml:"batch_sizes" about:"how many are asked for at a time"`
	Limit       time.Duration `toml:"limit" about:"of the whole check"`
}

// Phases says what the output means and how long each phase may take.
type Phases struct {
	Rules  string                 `toml:"rules" path:"rules" reload:"attempt" about:"a built-in family or a file"`
	Limits map[phases.Phase]Limit `toml:"limits" reload:"now" about:"by phase: { loading_weights = { quiet = \"15m\", timeout = \"4h\" } }; others keep the built-in floors"`
	Own    []phases.Rule          `toml:"rule" reload:"attempt" about:"one's own rules, beside those of the family; the same form as in a rules file"`
}

// Limit bounds one phase. Zero keeps the built-in floor.
type Limit struct {
	Quiet   time.Duration `toml:"quiet"`   // patience while no source moves
	Timeout time.Duration `toml:"timeout"` // of the whole phase, moving or not
}

// Relaunch says what is killed, and whether and how it is tried again.
type Relaunch struct {
	Act           string        `toml:"act" oneof:"observe start all" about:"start: kills what is stuck while starting; observe: only tells"`
	Policy        string        `toml:"policy" oneof:"on-failure always never" about:"when to try again"`
	Attempts      int           `toml:"attempts" about:"launches of the server, the first included, within window"`
	Window        time.Duration `toml:"window" about:"in which attempts are counted"`
	SameCause     int           `toml:"same_cause" about:"the same cause so often in a row: give up"`
	NoProgress    int           `toml:"no_progress" about:"so many attempts without a new furthest phase: give up"`
	Backoff       Backoff       `toml:"backoff" about:"wait before the next attempt"`
	HealthyAfter  time.Duration `toml:"healthy_after" about:"of serving: budgets start anew"`
	OnForeignStop bool          `toml:"on_foreign_stop" about:"relaunch when somebody else drained the server"`
	Fallbacks     []string      `toml:"fallbacks" reload:"" about:"ready-made rungs that may change flags: \"graph-capture-oom\", ..."`
}

// Backoff is the wait before attempt n+1: Initial times Factor to the n-1, at
// most Max, then moved by up to the fraction Jitter either way.
type Backoff struct {
	Initial time.Duration `toml:"initial" about:"wait after the first failure"`
	Factor  float64       `toml:"factor" about:"by which each further failure lengthens the wait"`
	Max     time.Duration `toml:"max" about:"longest wait, before jitter"`
	Jitter  float64       `toml:"jitter" about:"fraction by which chance moves the wait either way"`
}

// Fallback is a rung of one's own: what to change after a cause.
type Fallback struct {
	Cause string            `toml:"cause" about:"of the failure, by its name"`
	Phase string            `toml:"phase" about:"in which it failed; empty: any"`
	Set   map[string]string `toml:"set" about:"flags of the next attempt: a value, \"x0.5\" to scale it, \"x0.5|64\": 64 where none is known, \"\": no value"`
	Env   map[string]string `toml:"env" about:"added to its environment"`
	Min   int               `toml:"min" about:"lowest value that a scaled flag may take"`
	Max   int               `toml:"max" about:"how often the rung may be taken; 0: once, three times where it scales a flag"`
}

// Stop says how a server is ended.
type Stop struct {
	Signal  string        `toml:"signal" about:"first, to the server"`
	Drain   time.Duration `toml:"drain" about:"for SGLang's own drain"`
	Grace   time.Duration `toml:"grace" about:"then, before SIGKILL"`
	Release time.Duration `toml:"release" about:"for GPU memory and ports after the last process is gone"`
	Settle  time.Duration `toml:"settle" about:"between the word of a stop (on_stopping) and the signal to a server that serves"`
}

// GPU says which devices belong to the launch and how they are watched.
type GPU struct {
	Devices Devices `toml:"devices" about:"\"auto\" (CUDA_VISIBLE_DEVICES, --base-gpu-id, tp/pp/dp) or a list of UUIDs"`
	Sample  Sample  `toml:"sample" reload:"now" about:"how often each device is read"`
	Xid     string  `toml:"xid" reload:"now" oneof:"act report" about:"what an Xid event of our devices does"`
}

// Sample holds the interval between two readings in each stage of a launch.
type Sample struct {
	Starting time.Duration `toml:"starting" about:"between two readings of a device until the server is ready"`
	Serving  time.Duration `toml:"serving" about:"between two readings of a device from then on"`
}

// Log says where attempts are recorded and how much of them is kept.
type Log struct {
	Directory   string `toml:"directory" path:"any" about:"of the launch's records; empty: the state directory"`
	Rotate      Rotate `toml:"rotate" reload:"attempt" about:"of an attempt's log"`
	Keep        Keep   `toml:"keep" reload:"now" about:"oldest go first"`
	Passthrough string `toml:"passthrough" oneof:"auto raw lines off" about:"the server's output on ours"`
}

// Rotate says when an attempt's log moves on to a new file.
type Rotate struct {
	Size Size          `toml:"size" about:"of a part: then another one begins"`
	Age  time.Duration `toml:"age" about:"of a part, since its first byte"`
	Keep int           `toml:"keep" about:"parts that stay beside the one that is written"`
}

// Keep bounds what the state directory holds.
type Keep struct {
	Launches int  `toml:"launches" about:"folders of launches"`
	Evidence Size `toml:"evidence" about:"collected before kills, all together"`
}

// Listen says where sglaunch answers.
type Listen struct {
	HTTP   string `toml:"http" about:"host:port of status and metrics; empty: off"`
	Socket string `toml:"socket" path:"any" about:"control socket; empty: in the runtime directory"`
}

// Hooks are commands that are told, with JSON on standard input.
type Hooks struct {
	OnReady     []string      `toml:"on_ready" path:"argv" about:"argv; the launch is ready"`
	OnStopping  []string      `toml:"on_stopping" path:"argv" about:"argv; before the signal, so that a router can drain"`
	OnFailure   []string      `toml:"on_failure" path:"argv" about:"argv; an attempt failed"`
	OnRecovered []string      `toml:"on_recovered" path:"argv" about:"argv; ready again after a failure"`
	OnGaveUp    []string      `toml:"on_gave_up" path:"argv" about:"argv; no attempt is left"`
	OnStuck     []string      `toml:"on_stuck" path:"argv" about:"argv; no progress for too long"`
	Webhook     string        `toml:"webhook" about:"URL that gets the same JSON"`
	Limit       time.Duration `toml:"limit" about:"of one hook"`
}

// Default is the configuration of an empty file.
func Default() Config {
	return Config{
		Server: Server{Name: "sglang", Stdio: "pty", Stdin: "auto"},
		Ready: Ready{
			Timeout:     4 * time.Hour,
			OutputCheck: "auto",
			Check: Check{
				Generations: 75, Tokens: 1024,
				BatchSizes: []int{1, 8, 32}, Limit: 10 * time.Minute,
			},
		},
		Phases: Phases{Rules: "sglang"},
		Relaunch: Relaunch{
			Act:          "start",
			Policy:       "on-failure",
			Attempts:     5,
			Window:       2 * time.Hour,
			SameCause:    3,
			NoProgress:   3,
			Backoff:      Backoff{Initial: 5 * time.Second, Factor: 2, Max: 5 * time.Minute, Jitter: 0.1},
			HealthyAfter: 10 * time.Minute,
		},
		Stop: Stop{
			Signal:  "SIGTERM",
			Drain:   60 * time.Second,
			Grace:   15 * time.Second,
			Release: 2 * time.Minute,
		},
		GPU: GPU{
			Sample: Sample{Starting: time.Second, Serving: 10 * time.Second},
			Xid:    "act",
		},
		Log: Log{
			Rotate:      Rotate{Size: 1 << 30, Age: 24 * time.Hour, Keep: 10},
			Keep:        Keep{Launches: 50, Evidence: 2 << 30},
			Passthrough: "auto",
		},
		Hooks: Hooks{Limit: 30 * time.Second},
	}
}
