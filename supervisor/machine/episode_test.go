package machine

import (
	"math"
	"math/rand/v2"
	"time"

	"sglaunch/phases"
)

// The mix of a night: what goes wrong, how often, how long things take. The
// numbers are an estimate, made after some 120 public failures and hangs of
// SGLang launches. Change none; draw other seeds.
const (
	nightHours            = 8
	faultsPerLaunch       = 0.35 // probability that a launch meets a fault before ready
	faultsPerServingHour  = 0.08
	coldShare             = 0.2 // of launches with cold caches
	silentShare           = 0.3 // of launches with a long legitimate silence
	oracleKill            = 20 * time.Second
	oracleRelease         = 30 * time.Second
	readingEvery, noSound = 2 * time.Minute, -1
)

type span struct{ from, to float64 } // minutes; log-uniform between the two

func (s span) draw(r *rand.Rand) time.Duration {
	low, high := max(s.from, 0.01), max(s.to, 0.02)
	return time.Duration(math.Exp(math.Log(low)+r.Float64()*(math.Log(high)-math.Log(low))) * float64(time.Minute))
}

var phaseMinutes = map[phases.Phase]span{
	phases.Starting: {0.2, 0.5}, phases.DistributedInit: {0.1, 1}, phases.LoadingWeights: {1, 25}, phases.WeightsLoaded: {0, 8},
	phases.KVCache: {0, 0.1}, phases.Autotune: {0, 2}, phases.GraphCapture: {0.2, 6}, phases.Warmup: {0.1, 0.6},
}

var coldFactor = map[phases.Phase]span{phases.LoadingWeights: {5, 12}, phases.GraphCapture: {2, 10}, phases.Autotune: {2, 8}}

var silenceMinutes = map[phases.Phase]span{
	phases.LoadingWeights: {1, 8}, phases.WeightsLoaded: {2, 15}, phases.Autotune: {0.5, 11}, phases.GraphCapture: {1, 7},
}

// trouble is a class of fault, with its share.
type trouble string

type share struct {
	what trouble
	of   float64
}

var startShares = []share{
	{"transient_crash", 0.25}, {"patch_crash", 0.15}, {"needs_change", 0.20}, {"permanent", 0.10}, {"hang_transient", 0.15},
	{"hang_lock", 0.05}, {"peer_or_box", 0.05}, {"hardware", 0.05},
}

var servingShares = []share{{"crash", 0.5}, {"zombie", 0.2}, {"hang", 0.2}, {"gpu_lost", 0.1}}

func pick(r *rand.Rand, shares []share) trouble {
	roll := r.Float64() * sum(shares)
	for _, s := range shares {
		if roll -= s.of; roll < 0 {
			return s.what
		}
	}
	return shares[len(shares)-1].what
}

func sum(shares []share) (total float64) {
	for _, s := range shares {
		total += s.of
	}
	return total
}

// episode is one launch of a night as an operator lives it who knows every
// cause at once: it fails in its own way until that is cured, or it serves
// until something else happens.
type episode struct {
	lasts   map[phases.Phase]time.Duration
	silent  phases.Phase // has no line in it for that long
	silence time.Duration

	fault   trouble // before ready; "" = none
	phase   phases.Phase
	part    float64 // of the phase, when it strikes
	cause   string
	sure    string        // confidence of the output's word
	outage  time.Duration // until a peer or the box is back
	spins   bool          // a hang with busy GPUs
	frames  bool          // the traceback runs through the patched file
	serving trouble
	serves  time.Duration // until it strikes
}

// changes are the causes that a rung cures, and where they strike.
var changes = []struct {
	cause string
	phase phases.Phase
}{
	{"oom_graph_capture", phases.GraphCapture}, {"oom_weights", phases.LoadingWeights}, {"mem_fraction_too_low", phases.KVCache},
	{"oom_kv_cache", phases.KVCache}, {"unsupported_arch", phases.GraphCapture}, {"p2p_broken", phases.DistributedInit},
}

func drawEpisode(r *rand.Rand) *episode {
	e := &episode{lasts: map[phases.Phase]time.Duration{}, silent: noSound, part: r.Float64(), sure: "high"}
	cold := r.Float64() < coldShare
	for p := phases.Starting; p <= phases.Warmup; p++ {
		e.lasts[p] = phaseMinutes[p].draw(r)
		if f, ok := coldFactor[p]; ok && cold {
			e.lasts[p] = time.Duration(float64(e.lasts[p]) * f.draw(r).Minutes())
		}
	}
	if r.Float64() < silentShare {
		quiet := []phases.Phase{phases.LoadingWeights, phases.WeightsLoaded, phases.Autotune, phases.GraphCapture}
		e.silent = quiet[r.IntN(len(quiet))]
		e.silence = silenceMinutes[e.silent].draw(r)
		e.lasts[e.silent] += e.silence
	}
	e.serves = time.Duration(r.ExpFloat64() / faultsPerServingHour * float64(time.Hour))
	e.serving = pick(r, servingShares)
	if r.Float64() < faultsPerLaunch {
		e.strike(r)
	}
	return e
}

// strike draws the fault before ready.
func (e *episode) strike(r *rand.Rand) {
	e.fault = pick(r, startShares)
	e.phase = phases.Phase(r.IntN(int(phases.Warmup) + 1))
	switch e.fault {
	case "transient_crash":
		e.cause, e.sure = []string{"segfault", "nccl_error", "killed_outside", "unknown", "cuda_illegal_access"}[r.IntN(5)], "medium"
	case "patch_crash":
		e.cause = []string{"cuda_illegal_access", "segfault", "scheduler_exception"}[r.IntN(3)]
		if e.phase = phases.Autotune; r.Float64() < 0.3 {
			e.phase, e.frames = phases.GraphCapture, true
		}
	case "needs_change":
		c := changes[r.IntN(len(changes))]
		e.cause, e.phase = c.cause, c.phase
	case "permanent":
		e.cause = []string{"hf_auth", "model_path_missing", "bad_argument", "unsupported_model"}[r.IntN(4)]
		e.phase = phases.Starting
	case "hang_transient":
		e.phase = []phases.Phase{phases.DistributedInit, phases.LoadingWeights, phases.GraphCapture, phases.Warmup}[r.IntN(4)]
		e.spins = r.Float64() < 0.7
	case "hang_lock":
		if e.phase = phases.GraphCapture; r.Float64() < 0.3 {
			e.phase = phases.Autotune
		}
		if r.Float64() < 0.5 {
			e.cause, e.sure = "jit_lock", "low"
		}
	case "peer_or_box":
		e.cause = []string{"fabric_not_ready", "hf_network"}[r.IntN(2)]
		if e.phase = phases.DistributedInit; e.cause == "hf_network" {
			e.phase = phases.LoadingWeights
		}
		e.outage = time.Duration(10+r.IntN(51)) * time.Minute
	case "hardware":
		e.cause = "gpu_lost"
	}
}

// final: no relaunch of that night helps.
func (t trouble) final() bool { return t == "permanent" || t == "hardware" || t == "gpu_lost" }

// until is how long a launch takes to reach a part of a phase.
func (e *episode) until(phase phases.Phase, part float64) time.Duration {
	var d time.Duration
	for p := phases.Starting; p < phase; p++ {
		d += e.lasts[p]
	}
	return d + time.Duration(part*float64(e.lasts[phase]))
}

// cured is what holds for the rest of a night once it was found.
type cured map[string]bool

// strikes reports whether the fault of an episode happens at all.
func (e *episode) strikes(c cured) bool {
	switch e.fault {
	case "":
		return false
	case "patch_crash":
		return !c["patch"]
	case "hang_lock":
		return !c["caches"]
	case "needs_change":
		return !c[e.cause]
	}
	return true
}

// oracle is the time served by an operator who knows each fault the moment it
// happens, and its cure.
func oracle(episodes func(int) *episode) time.Duration {
	const night = nightHours * time.Hour
	known, served, at := cured{}, time.Duration(0), time.Duration(0)
	for i := 0; at < night; i++ {
		e := episodes(i)
		if e.strikes(known) {
			at += e.until(e.phase, e.part) + max(oracleKill+oracleRelease, e.outage)
			if e.fault.final() {
				return served
			}
			known.add(e)
			continue
		}
		at += e.until(phases.Ready, 0)
		if at < night {
			served += min(e.serves, night-at)
		}
		if at += e.serves; e.serving.final() {
			return served
		}
		at += oracleKill + oracleRelease
	}
	return served
}

func (c cured) add(e *episode) {
	switch e.fault {
	case "patch_crash":
		c["patch"] = true
	case "hang_lock":
		c["caches"] = true
	case "needs_change":
		c[e.cause] = true
	}
}
