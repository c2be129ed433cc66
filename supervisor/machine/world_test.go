package machine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"sglaunch/internal/shim/wire"
	"sglaunch/phases"
)

// world plays one night around a machine: shim, server, sources, people. With
// chaos it also loses answers, kills the supervisor and sets the clock.
type world struct {
	opt   Options
	m     *Machine
	g     guard
	r     *rand.Rand
	chaos bool

	now     time.Duration // since dusk, true time
	skew    time.Duration // of the clock that events are stamped by
	queue   []due
	log     []Event
	decided []string // one line an attempt

	fate     *rand.Rand
	episodes []*episode
	current  int  // index of the episode that the running attempt plays
	struck   bool // its fault has shown, and goes on until it is cured
	known    cured
	back     time.Duration // when a peer or the box is there again

	life    int // of the server: what an earlier one had to say is void
	patched bool
	readyAt time.Duration // of the serving server; 0 = none
	brokeAt time.Duration // when it ceased to serve; 0 = it serves
	served  time.Duration
	words   Diagnosis
	hello   Resumed // what the shim knows
}

type due struct {
	at      time.Duration
	life    int // 0 = always
	attempt int
	body    Body
}

var (
	dusk       = time.Date(2026, 2, 19, 22, 0, 0, 0, time.UTC)
	nightPatch = ActivePatch{Name: "tune", Files: []string{"/venv/sglang/srt/model_executor/model_runner.py"}, Proof: "autotune"}
)

const night = nightHours * time.Hour

func newWorld(seed uint64, opt Options, chaos bool) *world {
	w := &world{opt: opt, r: rand.New(rand.NewPCG(seed, 1)), chaos: chaos, known: cured{}}
	w.m, _ = New(opt)
	w.fate = rand.New(rand.NewPCG(seed, 2)) // of its own: whatever the machine does, the same befalls it
	return w
}

func (w *world) episode(i int) *episode {
	for len(w.episodes) <= i {
		w.episodes = append(w.episodes, drawEpisode(w.fate))
	}
	return w.episodes[i]
}

// play runs the night to its end and returns what went wrong; "" = nothing.
func (w *world) play() string {
	w.later(0, 0, Begin{})
	if w.chaos {
		w.disturb()
	}
	for w.now < night {
		if _, ended := w.m.Ended(); ended {
			break
		}
		if wrong := w.next(night); wrong != "" {
			return wrong
		}
	}
	w.account(min(w.now, night))
	return ""
}

// close asks for the end and plays on until it has come.
func (w *world) close() string {
	const bound = 20 * time.Minute // the sum of every bound on the way down
	w.queue = slices.DeleteFunc(w.queue, func(d due) bool { _, is := d.body.(disaster); return is })
	w.later(0, 0, StopAsked{By: "SIGTERM"})
	for limit := w.now + bound; w.now < limit; {
		if _, ended := w.m.Ended(); ended {
			return ""
		}
		if wrong := w.next(limit); wrong != "" {
			return wrong
		}
	}
	return fmt.Sprintf("asked to stop, it has not ended after %s but is %s", bound, w.m.State())
}

// next takes the earliest of what is due.
func (w *world) next(limit time.Duration) string {
	e := due{at: limit}
	if len(w.queue) > 0 && w.queue[0].at < limit {
		e = w.queue[0]
	}
	if at, armed := w.m.Deadline(); armed {
		if tick := max(at.Sub(dusk)-w.skew, w.now); tick <= e.at {
			w.now = max(w.now, tick)
			return w.tell(0, Tick{})
		}
	}
	w.now = max(w.now, e.at)
	if e.body == nil {
		return ""
	}
	w.queue = w.queue[1:]
	if e.life != 0 && e.life != w.life {
		return ""
	}
	return w.happen(e)
}

// plan puts something on the agenda, which is in order of time.
func (w *world) plan(d due) {
	i := len(w.queue)
	for i > 0 && w.queue[i-1].at > d.at {
		i--
	}
	w.queue = slices.Insert(w.queue, i, d)
}

// later plans what happens whatever becomes of the server.
func (w *world) later(in time.Duration, attempt int, b Body) {
	w.plan(due{at: w.now + in, attempt: attempt, body: b})
}

// tell gives the machine one event, and performs what follows.
func (w *world) tell(attempt int, b Body) string {
	e := Event{Seq: uint64(len(w.log) + 1), At: dusk.Add(w.now + w.skew), Attempt: attempt, Roll: w.r.Float64(), Body: b}
	w.log = append(w.log, e)
	w.g.before(b)
	was := w.m.State()
	effects := w.m.Step(e)
	if wrong := w.g.after(w.m, e, was, effects); wrong != "" {
		return fmt.Sprintf("%s: after %T at %s in %s", wrong, b, w.now, was)
	}
	for _, effect := range effects {
		w.perform(effect)
	}
	return ""
}

// perform does what the machine asks for, in the time that it takes.
func (w *world) perform(e Effect) {
	var answer Body
	takes := time.Second
	switch a := e.Body.(type) {
	case Report:
		if a.Event == "attempt_ended" {
			w.decided = append(w.decided, fmt.Sprintf("%s %v %v %v", w.now.Round(time.Second), a.Fields["outcome"], a.Fields["cause"], a.Fields["phase"]))
		}
		return
	case Preflight:
		answer = Preflighted{}
	case ApplyPatch:
		p := Patched{Active: []ActivePatch{nightPatch}}
		if w.patched = !slices.Contains(a.Without, nightPatch.Name); !w.patched {
			p.Active = nil
		}
		answer = p
	case Spawn:
		w.born(e.Attempt, a)
		return
	case SignalServer:
		if w.hello.Server != nil && w.hello.Exited == nil && !(w.chaos && w.r.IntN(10) == 0) {
			w.plan(due{at: w.now + 5*time.Second, life: w.life, attempt: e.Attempt, body: Exited{Status: wire.Status{Signal: 9}}})
		}
		return
	case KillTree:
		w.kill(e.Attempt)
		return
	case GatherEvidence:
		answer, takes = Evidence{Diagnosis: w.words}, 5*time.Second
	case AwaitRelease:
		answer, takes = Released{}, oracleRelease
	case RevertPatch:
		answer = Reverted{}
	case CheckOutput:
		w.plan(due{at: w.now + time.Minute, life: w.life, attempt: e.Attempt, body: soundAnswers(a.CheckSize)})
		return
	default:
		return
	}
	w.respond(takes, e.Attempt, answer)
}

// respond answers for the performer; in chaos it may be slow, or fail.
func (w *world) respond(takes time.Duration, attempt int, answer Body) {
	if w.chaos {
		switch roll := w.r.IntN(200); {
		case roll < 4:
			return // nobody ever answers
		case roll < 10:
			takes += time.Duration(w.r.IntN(300)) * time.Second
		case roll < 12:
			w.respond(takes+time.Second, attempt, answer) // twice
		case roll == 12:
			answer = failing(answer)
		}
	}
	w.later(takes, attempt, answer)
}

func failing(answer Body) Body {
	switch answer.(type) {
	case Preflighted:
		return Preflighted{Refused: "port 30000 is taken", Cause: "port_in_use"}
	case Patched:
		return PatchRefused{Reason: "drifted"}
	case Released:
		return NotReleased{Holder: "process 9", Foreign: true}
	case Reverted:
		return RevertFailed{Reason: "EROFS"}
	}
	return answer
}

// born starts the server of an attempt: the next episode, or the same again
// where its fault is not cured.
func (w *world) born(attempt int, s Spawn) {
	w.life++
	w.words, w.brokeAt, w.readyAt = Diagnosis{SGLang: true}, 0, 0
	w.hello = Resumed{Attempt: attempt, Server: &wire.Proc{PID: 100 + attempt}}
	w.cure(s)
	if w.struck && w.isCured(w.episode(w.current)) {
		w.current, w.struck, w.back = w.current+1, false, 0
	}
	e := w.episode(w.current)
	at := func(in time.Duration, b Body) {
		w.plan(due{at: w.now + in, life: w.life, attempt: attempt, body: b})
	}
	at(0, Spawned{Proc: *w.hello.Server})
	if e.strikes(w.known) {
		w.lines(e, e.until(e.phase, e.part), at)
		at(e.until(e.phase, e.part), strike{e, e.fault})
		return
	}
	ready := e.until(phases.Ready, 0)
	w.lines(e, ready, at)
	at(ready, Seen{phases.Observation{Kind: phases.KindReady, Rule: "ready", Rank: "main", Phase: phases.Ready, RankPhase: phases.Ready}})
	at(ready+e.serves, strike{e, e.serving})
}

// isCured: the fault of an episode that has struck would not strike again.
func (w *world) isCured(e *episode) bool {
	return !e.strikes(w.known) || e.fault == "peer_or_box" && w.now+e.until(e.phase, e.part) >= w.back
}

// cure looks at what the machine changed.
func (w *world) cure(s Spawn) {
	w.known["patch"] = w.known["patch"] || !w.patched
	if _, ok := s.Env["TRITON_CACHE_DIR"]; ok {
		w.known["caches"] = true
	}
	all := fmt.Sprint(s.Flags, s.Env)
	for cause, mark := range map[string]string{
		"oom_graph_capture": "--mem-fraction-static 0.8", "oom_weights": "--cpu-offload-gb", "mem_fraction_too_low": "--mem-fraction-static 0.9",
		"oom_kv_cache": "--mem-fraction-static 0.8", "unsupported_arch": "--attention-backend triton", "p2p_broken": "NCCL_P2P_DISABLE",
	} {
		if strings.Contains(all, mark) {
			w.known[cause] = true
		}
	}
}

// lines is what output and sources say on the way to a moment of the start.
func (w *world) lines(e *episode, until time.Duration, at func(time.Duration, Body)) {
	begin := time.Duration(0)
	for p := phases.Starting; p <= phases.Warmup && begin < until; p++ {
		see := func(in time.Duration, k phases.Kind) {
			if in < until {
				at(in, Seen{phases.Observation{Kind: k, Rule: string(k), Rank: "TP0", Phase: p, RankPhase: p}})
			}
		}
		see(begin, phases.KindPhase)
		end := begin + e.lasts[p]
		for in := begin + readingEvery; in < end; in += readingEvery {
			if p == e.silent && in < begin+e.silence {
				if in < until {
					at(in, Activity{CPU: 1}) // nothing moves that we can see
				}
				continue
			}
			see(in, phases.KindProgress)
		}
		begin = end
	}
}
