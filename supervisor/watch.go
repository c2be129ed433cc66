package supervisor

import (
	"context"
	"slices"
	"sync"
	"time"

	"sglaunch/internal/gpu"
	"sglaunch/internal/probe"
	"sglaunch/internal/proc"
	"sglaunch/internal/shim/wire"
	"sglaunch/patch"
	"sglaunch/phases"
	"sglaunch/supervisor/machine"
)

// watcher looks at a running attempt from outside its output: processes, GPUs,
// HTTP. Each source has its own goroutine and its own limit.
type watcher struct {
	h *hands

	mu      sync.Mutex
	now     int               // the attempt that is watched
	server  int               // pid of its first process
	members map[int]wire.Proc // by pid, as the shim told them
	ranks   map[int]string    // scheduler processes that were seen alive
	lines   bool              // milestones are printed, so HTTP need not speak
	ready   bool              // the server said that it is ready
	proofs  map[string]*proof // by patch
	env     []string          // what an overlay adds to the server's environment
	sample  gpu.Sample
	told    []gpu.Xid // of this attempt, by the driver itself

	pressure  string             // folder that tells the pressure on the server; "" = not looked for
	groups    []proc.MemoryGroup // that count the memory of the server; nil = not looked for
	cached    *float64           // share of the weights in the page cache, while it is looked at
	uncounted string             // why it is not known
	batons    batons

	silent  map[string]string // sources that tell nothing, and why
	strange bool              // it was told that another answers in the server's place
	prober  *probe.Prober     // of the attempt
	asking  int               // requests of ours that the server works on
	asked   time.Time         // the newest of them ended
	worked  time.Time         // a batch was last seen in the output that is not for us
}

func newWatcher(h *hands) *watcher {
	return &watcher{h: h, members: map[int]wire.Proc{}, ranks: map[int]string{}, proofs: map[string]*proof{}, silent: map[string]string{}}
}

// start forgets the attempt before.
func (w *watcher) start(attempt int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now, w.lines, w.ready, w.strange, w.told = attempt, false, false, false, nil
	w.prober, w.worked = nil, time.Time{}
	w.members, w.ranks = map[int]wire.Proc{}, map[int]string{}
	for _, p := range w.proofs {
		p.reset()
	}
	w.h.gpus.Pace(w.h.settings().Starting)
}

// member takes note of a process; the first of an attempt is its server.
func (w *watcher) member(attempt int, p wire.Proc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if attempt == w.now {
		w.members[p.PID] = p
	}
}

// attempt watches one attempt until ctx ends.
func (w *watcher) attempt(ctx context.Context, attempt int, server wire.Proc) {
	w.mu.Lock()
	w.now, w.server, w.pressure, w.groups = attempt, server.PID, "", nil
	w.members[server.PID] = server
	w.mu.Unlock()
	w.batons.begin(w.h.caches())
	w.h.work.Go(func() { w.rollCall(ctx, attempt, server) })
	w.h.work.Go(func() { w.processes(ctx, attempt, server) })
	w.h.work.Go(func() { w.probe(ctx, attempt) })
	w.h.work.Go(func() { w.residency(ctx) })
}

// seen follows the output as far as the watcher needs it.
func (w *watcher) seen(attempt int, o phases.Observation, known bool) {
	if !known {
		w.h.launch.memory.seen(attempt, o, time.Now())
	}
	if o.Kind == phases.KindReady {
		w.nowReady()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if o.Phase > phases.Starting {
		w.lines = true
	}
	for _, p := range w.proofs {
		if verdict, news := p.seen(o); news && !known {
			w.h.loop.Post(attempt, verdict)
		}
	}
}

// patched takes what is needed to judge the patches' effect later.
func (w *watcher) patched(facts map[string]patch.Facts, env []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.env, w.proofs = env, map[string]*proof{}
	for name, f := range facts {
		if f.InPlace {
			w.proofs[name] = newProof(name, f, w.h.command)
		}
	}
}

func (w *watcher) overlay() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.env)
}

// pace is the time between two readings: often while starting, seldom in
// service, where polling costs latency.
func (w *watcher) pace() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ready {
		return w.h.settings().Serving
	}
	return w.h.settings().Starting
}

// processes reads the attempt's processes until ctx ends.
func (w *watcher) processes(ctx context.Context, attempt int, server wire.Proc) {
	sampler := proc.NewSampler()
	var counted []machine.MemoryGroup
	for {
		a := w.activity(ctx, sampler)
		if len(a.Compilers) > 0 {
			w.batons.look(ctx, w.pids())
		}
		counted = w.shortage(&a, counted)
		w.burden(&a, proc.ID{PID: server.PID, Start: server.Start})
		w.h.launch.memory.compiling(attempt, a.Compilers)
		w.h.loop.Post(attempt, a)
		if !pause(ctx, max(w.pace(), 100*time.Millisecond)) {
			return
		}
	}
}

// activity makes one reading of all sources.
func (w *watcher) activity(ctx context.Context, sampler *proc.Sampler) machine.Activity {
	r := sampler.Sample(ctx, w.ids())
	w.mu.Lock()
	sample := w.sample
	w.mu.Unlock()
	a := machine.Activity{CPU: r.CPU.Seconds(), ReadBytes: r.ReadBytes, Written: r.Written, Faults: r.Faults, Missing: r.Missing, Blocked: r.Blocked}
	for _, c := range r.Compilers {
		if !slices.Contains(a.Compilers, c.Comm) {
			a.Compilers = append(a.Compilers, c.Comm)
		}
	}
	slices.Sort(a.Compilers)
	for _, g := range w.h.pick(sample) {
		a.GPUs = append(a.GPUs, machine.GPUActivity{
			Index: g.Index, Used: known(g.MemoryKnown(), int64(g.Used)),
			Util: reading(g.Util), MemUtil: reading(g.MemUtil), PowerMW: reading(g.PowerMW),
		})
	}
	return a
}

func known(ok bool, v int64) int64 {
	if !ok {
		return -1
	}
	return v
}

func reading(r gpu.Reading) int { return int(known(r.Known, r.Value)) }

// pids numbers the processes of the attempt that are known.
func (w *watcher) pids() (pids []int) {
	for _, id := range w.ids() {
		pids = append(pids, id.PID)
	}
	return pids
}

// ids names the processes of the attempt that are known.
func (w *watcher) ids() []proc.ID {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ids []proc.ID
	for _, p := range w.members {
		ids = append(ids, proc.ID{PID: p.PID, Start: p.Start})
	}
	return ids
}
