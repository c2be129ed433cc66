package machine

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
	"time"

	"sglaunch/internal/shim/wire"
	"sglaunch/phases"
)

// act plays one action of a script.
func (a *actor) act(verb string, words []word) error {
	g := parseArgs(words)
	switch verb {
	case "options":
		return a.configure(g)
	case "patch":
		a.patches = append(a.patches, ActivePatch{
			Name: g.named["name"], Files: g.list("file"), Proof: g.named["proof"], OnUnproven: g.named["unproven"]})
	case "rung":
		return a.addRung(g)
	case "neighbours": // that the evidence of this attempt will find; sizes in GiB
		a.others = append(a.others, Neighbour{GPU: int(g.number("gpu", 0)), Total: 100 << 30,
			Before: uint64(g.number("before", 0)) << 30, Grown: uint64(g.number("grown", 0)) << 30, Ghost: g.has("ghost"), Text: g.text})
	case "go":
		return a.reach(g.at(0))
	case "ok":
		return a.answer()
	case "end":
		return a.end()
	case "tick":
		return a.tick()
	case "early": // a tick that comes before its time
		a.send(Tick{})
	case "crash": // the server ends by itself; what it said explains it
		a.diag = g.diagnosis()
		a.send(Exited{Status: g.status()})
		return a.end()
	case "hang": // nothing moves until the machine has had enough
		a.diag = g.diagnosis()
		a.diag.Failed = false
		if err := a.tick(); err != nil {
			return err
		}
		if a.m.State() != StateEvidence {
			return nil
		}
		return a.end()
	case "restore": // a new supervisor, from a snapshot
		data, err := a.m.Snapshot()
		if err == nil {
			a.m, err = Restore(a.opt, data)
		}
		return err
	default:
		return a.fact(verb, g)
	}
	return nil
}

// fact sends one event.
func (a *actor) fact(verb string, g args) error {
	switch verb {
	case "begin":
		a.send(a.beginning(g))
	case "preflighted":
		a.send(Preflighted{Refused: g.text, Cause: g.named["cause"], Memory: g.memory()})
	case "patched":
		a.send(Patched{Active: a.patches, Skipped: g.list("skipped")})
	case "patch_refused":
		a.send(PatchRefused{Reason: g.text})
	case "reverted":
		a.send(Reverted{})
	case "revert_failed":
		a.send(RevertFailed{Reason: g.text})
	case "spawned":
		a.send(Spawned{Proc: wire.Proc{PID: 100}})
	case "spawn_failed":
		a.send(SpawnFailed{Reason: g.text, Passing: g.has("passing")})
	case "proven":
		a.send(Proven{Patch: g.at(0), Effect: g.at(1), Enforce: true})
	case "http":
		a.send(Answered{Endpoint: "/health", Status: int(g.number("status", 503)), Ready: g.named["bad"] == "" && !g.has("early"), Bad: g.named["bad"]})
	case "checked":
		a.send(g.checked())
	case "working":
		a.send(Working{})
	case "reading":
		a.send(g.reading())
	case "rank_gone":
		gone := RankGone{Rank: g.at(0), Proc: wire.Proc{PID: 7}}
		if g.named["signal"] != "" {
			s := g.status()
			gone.Status = &s
		}
		a.send(gone)
	case "hardware":
		a.send(Hardware{GPU: 3, Xid: int(g.number("xid", 0)), Lost: g.has("lost"), Person: g.has("person"), Text: g.text})
	case "source_lost":
		a.send(SourceLost{Source: cmp.Or(g.named["source"], "NVML"), Reason: cmp.Or(g.text, "no answer")})
	case "exited":
		a.send(Exited{Status: g.status()})
	case "hearing":
		a.send(Hearing{})
	case "drained":
		a.send(Drained{Cut: g.has("cut"), Diagnosis: g.diagnosis()})
	case "tree_gone":
		a.send(TreeGone{})
	case "tree_left":
		a.send(TreeLeft{Procs: []wire.Proc{{PID: 41, Comm: "python", State: "D"}}})
	case "evidence":
		a.send(Evidence{Diagnosis: g.diagnosis(), Stacks: g.named["stacks"], Lock: g.named["lock"], Stale: g.named["stale"], Killed: g.named["killed"], Memory: g.memory()})
	case "released":
		a.send(Released{})
	case "not_released":
		a.send(NotReleased{Holder: g.text, Foreign: g.has("foreign")})
	case "stop":
		a.send(StopAsked{By: "SIGTERM", Force: g.has("force")})
	case "restart":
		a.send(RestartAsked{By: "sglaunch restart"})
	case "reload":
		return a.reload(g)
	case "resumed":
		a.send(g.resumed(a))
	default:
		return a.observed(verb, g)
	}
	return nil
}

// observed sends a fact from the output.
func (a *actor) observed(verb string, g args) error {
	o := phases.Observation{Rule: verb, Rank: cmp.Or(g.named["rank"], "TP0"), Line: 7, Text: g.text, Phase: a.m.Phase()}
	switch verb {
	case "phase":
		p, err := phases.ParsePhase(g.at(0))
		if err != nil {
			return err
		}
		o.Kind, o.Phase = phases.KindPhase, p
	case "progress":
		o.Kind, o.Done, o.Total, o.Unit = phases.KindProgress, int64(g.number("done", 1)), int64(g.number("total", 10)), "shards"
	case "ready":
		o.Kind, o.Phase = phases.KindReady, phases.Ready
	case "serving":
		o.Kind, o.Phase = phases.KindServing, phases.Serving
	case "fault":
		o.Kind, o.Cause, o.Certain, o.Echo = phases.KindFault, g.at(0), g.has("certain"), g.has("echo")
	case "note":
		o.Kind = phases.KindNote
	case "drain":
		o.Kind = phases.KindDrain
	case "activity":
		o.Kind, o.Activity = phases.KindActivity, g.at(0)
	default:
		return fmt.Errorf("there is no verb %q", verb)
	}
	o.RankPhase = o.Phase
	a.see(o)
	return nil
}

func (a *actor) beginning(g args) Begin {
	b := Begin{}
	if good, ok := g.named["lastgood"]; ok {
		b.LastGood = &LastGood{Changed: g.has("changed")}
		if good != "" {
			b.LastGood.Patches = strings.Split(good, ",")
		}
		b.LastGood.Differs = g.list("differs")
	}
	if ago := g.list("spawns"); len(ago) > 0 {
		b.Earlier = &Earlier{Cause: g.named["cause"], Same: int(g.number("same", 0))}
		for _, s := range ago {
			if d, err := time.ParseDuration(s); err == nil {
				b.Earlier.Spawns = append(b.Earlier.Spawns, a.now.Add(-d))
			}
		}
	}
	return b
}

func (g args) status() wire.Status {
	s := wire.Status{Code: int(g.number("code", 1)), Signal: int(g.number("signal", 0))}
	if s.Signal != 0 {
		s.Code = 0
	}
	return s
}

// checked reads [corrupt|undone|silent] ["why"] answers=.
func (g args) checked() Checked {
	c := Checked{Answers: int(g.number("answers", 75)), Tokens: 9000, Asked: 1024}
	switch g.at(0) {
	case "corrupt":
		c.Corrupt = g.text
	case "undone":
		c.Undone = g.text
	case "silent":
		c.Answers, c.Silent, c.Undone = 0, true, g.text
	}
	return c
}

func (g args) reading() Activity {
	r := Activity{
		CPU: g.number("cpu", 0), ReadBytes: uint64(g.number("bytes", 0)), Faults: uint64(g.number("faults", 0)),
		Compilers: g.list("compilers"), Blocked: g.list("blocked"), Missing: g.list("missing"), Written: uint64(g.number("written", 0)),
	}
	if g.named["io"] != "" {
		r.Pressure = &Pressure{IO: g.number("io", 0), CPU: g.number("cpu_pressure", 0)}
	}
	r.Memory = g.memory()
	if g.named["cached"] != "" {
		share := g.number("cached", 0) / 100
		r.Cached = &share
	}
	if g.named["util"] != "" {
		for i := range 2 {
			r.GPUs = append(r.GPUs, GPUActivity{Index: i, Used: int64(g.number("used", 0)), Util: int(g.number("util", 0)), MemUtil: int(g.number("memutil", 0))})
		}
	}
	return r
}

// memory reads memory=NAME:LIMIT:USED:KILLED:REACHED:SLOWED,..., sizes in GiB; a
// count of - is not known.
func (g args) memory() (all []MemoryGroup) {
	for _, text := range g.list("memory") {
		var n [5]uint64
		f := strings.Split(text, ":")
		for i := range n {
			_, _ = fmt.Sscan(f[i+1], &n[i])
		}
		all = append(all, MemoryGroup{Name: f[0], Limit: n[0] << 30, Used: n[1] << 30, Cache: 1 << 29,
			Killed: n[2], Counted: f[3] != "-", Reached: n[3], Slowed: n[4]})
	}
	return all
}

func (g args) resumed(a *actor) Resumed {
	r := Resumed{Restarts: 1, Attempt: int(g.number("attempt", float64(a.machine().Attempt()))), TreeGone: g.has("tree_gone")}
	if g.has("alive") {
		r.Server = &wire.Proc{PID: 100}
	}
	if g.named["signal"] != "" || g.named["code"] != "" {
		s := g.status()
		r.Exited = &s
	}
	return r
}

func (a *actor) addRung(g args) error {
	r := Rung{Name: g.named["name"], Causes: g.list("cause"), Set: map[string]string{}, Times: int(g.number("times", 0)),
		Min: g.number("min", 0), Max: g.number("max", 0), Activity: g.named["activity"], Text: g.list("text")}
	for _, p := range g.list("phase") {
		phase, err := phases.ParsePhase(p)
		if err != nil {
			return err
		}
		r.Phases = append(r.Phases, phase)
	}
	if flag, form, ok := strings.Cut(g.named["set"], ":"); ok {
		r.Set[flag] = form
	}
	if name, value, ok := strings.Cut(g.named["env"], ":"); ok {
		r.Env = map[string]string{name: value}
	}
	a.opt.Rungs = append(a.opt.Rungs, r)
	return r.validate()
}

// configure sets options; quiet and timeout are those of every phase.
// reload reads other options, as a launch.toml that says nothing of the server.
func (a *actor) reload(g args) error {
	a.opt.Limits = maps.Clone(a.opt.Limits)
	if err := a.configure(g); err != nil {
		return err
	}
	read := a.opt
	read.SGLang, read.Learned, read.Argv, read.Rungs = false, nil, nil, nil
	read.Check.Cannot = ""
	a.send(Reload{By: "sglaunch reload", Options: read, Text: "reloaded: relaunch.attempts from now on"})
	return nil
}

func (a *actor) configure(g args) error {
	o := &a.opt
	for key, value := range g.named {
		d, _ := time.ParseDuration(value)
		switch key {
		case "act":
			o.Act = value
		case "check":
			o.Check.Mode = value
		case "cannot":
			o.Check.Cannot = value
		case "policy":
			o.Policy = value
		case "sglang":
			o.SGLang = value == "yes"
		case "follower":
			o.Follower = value == "yes"
		case "on_foreign_stop":
			o.OnForeignStop = value == "yes"
		case "attempts":
			o.Attempts = int(g.number(key, 5))
		case "same":
			o.SameCause = int(g.number(key, 3))
		case "no_progress":
			o.NoProgress = int(g.number(key, 3))
		case "window":
			o.Window = d
		case "total":
			o.Total = d
		case "ready_timeout":
			o.ReadyTimeout = d
		case "healthy_after":
			o.HealthyAfter = d
		case "settle":
			o.Stop.Settle = d
		case "grace":
			o.Stop.Grace = d
		case "backoff":
			o.Backoff.Initial = d
		case "jitter":
			o.Backoff.Jitter = g.number(key, 0)
		case "learned":
			o.Learned = map[phases.Phase]Limit{phases.LoadingWeights: {Quiet: d, Timeout: d}}
		case "quiet":
			o.Limits[phases.LoadingWeights] = Limit{Quiet: d, Timeout: 4 * time.Hour}
		case "rungs":
			rungs, err := ReadyRungs(strings.Split(value, ","))
			if err != nil {
				return err
			}
			o.Rungs = append(o.Rungs, rungs...)
		case "argv":
			o.Argv = strings.Fields(value)
		default:
			return fmt.Errorf("there is no option %q", key)
		}
	}
	return nil
}
