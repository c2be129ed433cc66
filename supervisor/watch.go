package supervisor

import (
	"cmp"
	"context"
	"slices"
	"strings"
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
	h *Hands

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

func newWatcher(h *Hands) *watcher {
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

// rankPoll is how often the scheduler processes are looked for: a dead one
// leaves a zombie service, which must not last.
const rankPoll = 2 * time.Second

// rollCall looks for ranks that are gone until ctx ends. It waits for no other
// reading: a zombie service must be found within 5 s, whatever hangs.
func (w *watcher) rollCall(ctx context.Context, attempt int, server wire.Proc) {
	for {
		if gone := w.goneRanks(server); gone != nil {
			w.h.loop.Post(attempt, *gone)
		}
		if !pause(ctx, min(rankPoll, max(w.pace(), 100*time.Millisecond))) {
			return
		}
	}
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

// goneRanks finds a scheduler that was alive and is not any more while the
// server lives on. SGLang up to v0.5.9 does not notice that.
func (w *watcher) goneRanks(server wire.Proc) *machine.RankGone {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !proc.Alive(proc.ID{PID: server.PID, Start: server.Start}) {
		return nil
	}
	for pid, p := range w.members {
		title := w.ranks[pid]
		now, err := proc.Identify(pid)
		alive := err == nil && now.Start == p.Start && !now.Dead()
		switch {
		case alive && title == "":
			if name, ok := rankTitle(proc.Command(now)); ok {
				w.ranks[pid] = name
			}
		case !alive && (title != "" || w.lostChild(p, server)):
			gone := &machine.RankGone{Rank: cmp.Or(title, "a process of the server"), Proc: p}
			if status, ok := proc.ExitStatus(pid); ok {
				gone.Status = &wire.Status{Code: max(status.ExitStatus(), 0)}
				if status.Signaled() {
					gone.Status = &wire.Status{Signal: int(status.Signal()), Core: status.CoreDump()}
				}
			}
			delete(w.ranks, pid)
			delete(w.members, pid)
			return gone
		case !alive:
			delete(w.members, pid)
		}
	}
	return nil
}

// lostChild reports whether a child of the server died of a signal before it
// took its title and lies there uncollected: a server that looks after its
// children collects them.
func (w *watcher) lostChild(p, server wire.Proc) bool {
	status, ok := proc.ExitStatus(p.PID)
	return ok && p.PPID == server.PID && status.Signaled()
}

// rankTitle reads the titles that SGLang gives the processes that a server
// needs: sglang::scheduler_TP3 (v0.4.6 and later), sglang::detokenizer.
func rankTitle(command string) (string, bool) {
	title, _, _ := strings.Cut(command, " ")
	name, ok := strings.CutPrefix(title, "sglang::")
	if !ok {
		return "", false
	}
	if name == "scheduler" || name == "detokenizer" || name == "data_parallel_controller" {
		return name, true
	}
	if rank, ok := strings.CutPrefix(name, "scheduler_"); ok {
		return strings.ReplaceAll(rank, "_", " "), true
	}
	return "", false
}

// gpus takes the news of the sampler until it ends.
func (w *watcher) gpus() {
	for e := range w.h.gpus.Events() {
		w.gpuNews(e)
	}
}

func (w *watcher) gpuNews(e gpu.Event) {
	switch n := e.(type) {
	case gpu.Sample:
		w.mu.Lock()
		w.sample = n
		delete(w.silent, "NVML")
		w.mu.Unlock()
		w.h.watermark(n)
		w.h.record(n)
	case gpu.SourceAbsent:
		w.noNVML(n.Reason)
	case gpu.SourceHanging:
		w.noNVML("the driver has not answered for " + n.For.Round(time.Second).String())
	case gpu.SourceLost:
		w.noNVML(n.Why)
	case gpu.Xid:
		w.xid(n)
	}
}

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
