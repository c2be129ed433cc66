package supervisor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"sglaunch/internal/gpu"
	"sglaunch/internal/mask"
	"sglaunch/internal/serve"
	"sglaunch/internal/shim/wire"
	"sglaunch/internal/statedir"
	"sglaunch/internal/visible"
	"sglaunch/supervisor/machine"
)

// Hands performs effects. Each that takes time runs in a goroutine of its own
// under its own limit and posts its result; none holds the loop.
type Hands struct {
	Setup
	ctx    context.Context
	conn   *wire.Conn
	loop   *Loop
	reader *Reader
	launch *launch

	restarts int          // of the supervisor
	dropped  atomic.Int64 // records that the disk did not take in time
	reread   struct {     // output that a supervisor before has read
		attempt int
		to      int64
	}

	orders  chan wire.Message // to the shim, in the order decided
	records chan envelope     // to disk; the disk may hang
	samples chan sampleLine   // to disk, less precious
	writers sync.WaitGroup    // of these three
	ending  chan struct{}     // closed when the writers have only to empty them
	work    sync.WaitGroup    // all else that is under way
	endWork context.CancelFunc

	live      atomic.Pointer[Settings] // those in force
	leave     chan string              // the program that is to follow this one
	reloading sync.Mutex

	gpus  gpu.Source
	watch *watcher
	front *station // what is told and asked outside

	mu       sync.Mutex // guards what follows, which effects of one attempt share
	attempt  int
	since    time.Time      // of the attempt's beginning
	baseline []gpu.GPU      // of our devices, before the attempt
	peak     *gpu.Watermark // what the attempt has held
	ours     map[int]bool   // pids that ever belonged to the attempt
	ends     context.CancelFunc
	kit      kit
	endCheck context.CancelFunc // of the output check in flight
}

// Bounds of what may wait for a slow shim or a slow disk.
const (
	orderDepth  = 4096
	recordDepth = 8192

	workMargin   = 2 * time.Second // for what is under way to end, once it was told to
	recordMargin = 5 * time.Second // for the newest records to be written
	folderMargin = time.Second     // for the folder of an attempt to be made
)

func newHands(ctx context.Context, conn *wire.Conn, s Setup, l *launch) *Hands {
	ctx, endWork := context.WithCancel(ctx)
	h := &Hands{
		Setup: s, ctx: ctx, endWork: endWork, conn: conn, launch: l, leave: make(chan string, 1), ending: make(chan struct{}),
		orders: make(chan wire.Message, orderDepth), records: make(chan envelope, recordDepth), samples: make(chan sampleLine, 64),
		ours: map[int]bool{}, gpus: gpu.Absent("not looked at"),
	}
	h.live.Store(&h.Settings)
	return h
}

// settings are those in force; a reload replaces them as a whole.
func (h *Hands) settings() *Settings { return h.live.Load() }

// begin takes up the work: on a launch that already runs, its output is
// followed from where the supervisor before stopped.
func (h *Hands) begin(loop *Loop, hello *wire.Hello, l *launch) {
	h.loop = loop
	h.reader = NewReader(h.conn, h.settings().Rules, hello, loop.Post)
	h.restarts = hello.Restarts
	h.reread.attempt, h.reread.to = hello.Attempt, hello.Output
	h.reader.OnOutput = h.output
	h.reader.OnMember = h.member
	h.reader.OnSpawned = func(attempt int, p wire.Proc) { h.watch.attempt(h.attemptContext(), attempt, p) }
	h.reader.OnTrouble = func(text string) { loop.Post(0, machine.SourceLost{Source: "shim", Reason: text}) }
	h.reader.OnPing = func() {
		loop.Ping(func() { _ = h.conn.Send(wire.Message{Type: wire.Pong}) }) // past the queue, which ends before the rest of us
	}
	if !hello.Terminal {
		h.reader.OnHangup = func() { h.work.Go(h.hangup) }
	}
	h.watch = newWatcher(h)
	h.front = newStation(h, l.machine.View())
	loop.OnView = h.front.viewed
	h.reader.OnSeen = h.watch.seen
	if h.Sampler != nil {
		h.gpus = gpu.Start(gpu.Options{Argv: h.Sampler, Interval: h.settings().Starting})
	}
	h.makeFolder(max(hello.Attempt, 1)) // for what is told before there is an attempt
	h.writers.Go(h.sendOrders)
	h.writers.Go(h.writeRecords)
	h.writers.Go(h.writeSamples)
	h.work.Go(h.watch.gpus)
	h.front.open()
	if h.Quiet {
		h.order(wire.Message{Type: wire.Quiet, Off: true})
	}
	if hello.Attempt > 0 {
		h.takeAttempt(hello.Attempt)
		h.watch.patched(h.factsOf(l.machine.ActivePatches()), nil)
		h.resumeMembers(hello)
		if err := h.reader.Follow(hello.Attempt, l.seen[hello.Attempt]); err == nil && hello.Server != nil && !hello.TreeGone {
			h.watch.attempt(h.attemptContext(), hello.Attempt, *hello.Server)
		}
	}
}

// inOrder puts the wishes to end where they belong: after the news of how things
// stand, which take up what goes on; before it where the shim has granted them, or
// the end of the server would be told as nobody's wish.
func inOrder(stands machine.Body, asked []int, granted bool) []machine.Body {
	var stops []machine.Body
	for _, sig := range asked {
		stops = append(stops, stopBy(sig))
	}
	if granted {
		return append(stops, stands)
	}
	return append([]machine.Body{stands}, stops...)
}

// stopBy is the wish to end that a signal to the shim tells. Who types Ctrl-\ does
// not mean to wait for a drain.
func stopBy(sig int) machine.StopAsked {
	return machine.StopAsked{By: signalName(sig), Force: sig == int(unix.SIGQUIT)}
}

// unheard are the wishes to end that reached the shim and no supervisor: the one
// before died of something else at that moment. A hangup is one where a terminal
// has vanished.
func unheard(asked []int, heard int, terminal bool) []int {
	stops := slices.DeleteFunc(slices.Clone(asked), func(sig int) bool { return sig == int(unix.SIGHUP) && !terminal })
	return stops[min(heard, len(stops)):]
}

// close ends what is under way and writes what was told. Work that hangs, on a
// disk or a driver, is left behind: what it still says goes nowhere.
func (h *Hands) close() {
	h.endAttempt()
	h.front.close()
	_ = h.gpus.Close() // what a hanging driver leaves behind is named by the source itself
	h.endWork()
	awaitGroup(&h.work, workMargin)
	close(h.ending)
	awaitGroup(&h.writers, recordMargin)
}

// awaitGroup waits for goroutines to end, but not for ever.
func awaitGroup(group *sync.WaitGroup, limit time.Duration) {
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(limit):
	}
}

// each hands over what comes through a channel, until the end has begun and the
// channel is empty. It is never closed: somebody who hangs may still send.
func each[T any](from <-chan T, ending <-chan struct{}, do func(T)) {
	for {
		select {
		case t := <-from:
			do(t)
			continue
		case <-ending:
		}
		select {
		case t := <-from:
			do(t)
		default:
			return
		}
	}
}

// Perform hands an effect to whoever does it.
func (h *Hands) Perform(e machine.Effect) {
	switch a := e.Body.(type) {
	case machine.Report:
		h.report(e.Attempt, a)
	case machine.Preflight:
		h.takeAttempt(e.Attempt)
		h.do(e.Attempt, machine.CheckLimit, func(ctx context.Context) machine.Body { return h.preflight(ctx, e.Attempt, a.Beside) })
	case machine.ApplyPatch:
		h.do(e.Attempt, machine.PatchLimit, func(ctx context.Context) machine.Body { return h.applyPatches(ctx, a.Without) })
	case machine.RevertPatch:
		h.do(e.Attempt, machine.PatchLimit, func(ctx context.Context) machine.Body { return h.revertPatches(ctx, e.Attempt, a.SetAside) })
	case machine.Spawn:
		h.spawn(e.Attempt, a)
	case machine.CheckOutput:
		h.do(e.Attempt, a.Limit+machine.AnswerMargin, func(ctx context.Context) machine.Body { return h.checkOutput(ctx, e.Attempt, a.CheckSize) })
	case machine.SignalServer:
		h.stopAsking()
		h.order(wire.Message{Type: wire.Signal, Attempt: e.Attempt, Sig: a.Sig, Scope: wire.ScopeLeader})
	case machine.KillTree:
		h.stopAsking()
		h.kill(e.Attempt, a.Limit)
	case machine.GatherEvidence:
		h.do(e.Attempt, a.Limit, func(ctx context.Context) machine.Body { return h.gather(ctx, e.Attempt, a) })
	case machine.AwaitRelease:
		h.do(e.Attempt, a.Limit, h.awaitRelease)
	case machine.Finish:
		// Serve sees the machine's end and tells the shim once all is written.
	default:
		panic(fmt.Sprintf("internal error: nobody performs %T", a))
	}
}

// do runs work aside and posts its result.
func (h *Hands) do(attempt int, limit time.Duration, work func(context.Context) machine.Body) {
	h.work.Go(func() {
		ctx, cancel := context.WithTimeout(h.ctx, limit)
		defer cancel()
		h.loop.Post(attempt, work(ctx))
	})
}

// order queues a message to the shim.
func (h *Hands) order(m wire.Message) {
	m.At = time.Now()
	select {
	case h.orders <- m:
	case <-h.ctx.Done():
	}
}

func (h *Hands) sendOrders() {
	each(h.orders, h.ending, func(m wire.Message) {
		_ = h.conn.Send(m) // a shim that is gone is found by the reader
	})
}

// report tells a person and the records.
func (h *Hands) report(attempt int, r machine.Report) {
	now := time.Now()
	r = h.launch.memory.addTo(h.withKit(r), now)
	if r.Text != "" {
		h.order(wire.Message{Type: wire.Print, Text: "sglaunch: " + visible.Line(mask.String(r.Text))})
	}
	e := envelope{V: 1, Time: now, Launch: h.Name, Attempt: attempt, Event: r.Event, Text: mask.String(r.Text), Fields: masked(r.Fields)}
	h.launch.memory.told(e)
	h.front.told(e)
	select {
	case h.records <- e:
	default: // a disk that hangs
		h.dropped.Add(1)
	}
	if r.Event == "attempt_ended" {
		h.endAttempt()
	}
}

// writeRecords keeps the events of each attempt and, when one has ended, its
// result.
func (h *Hands) writeRecords() {
	file := appender{what: "events", tell: func(text string) {
		h.order(wire.Message{Type: wire.Print, Text: "sglaunch: " + text})
	}}
	log := zerolog.New(&file)
	made := 0 // the newest attempt that has a folder
	each(h.records, h.ending, func(e envelope) {
		if e.Attempt > made { // the first word of an attempt may be here before its first effect
			if _, err := h.launch.NewAttempt(e.Attempt); err == nil {
				made = e.Attempt
			}
		}
		file.to(h.attemptFolder(e.Attempt).Events())
		logEvent(log, e)
		switch e.Event {
		case "server_ready": // a launch that serves for weeks may end with the machine
			if report, ok := h.reader.Report(); ok {
				h.launch.memory.numbers(e.Attempt, report.Numbers)
			}
		case "attempt_ended":
			h.writeResult(e)
		}
	})
	file.close()
}

func (h *Hands) writeResult(e envelope) {
	field := func(name string) string { s, _ := e.Fields[name].(string); return s }
	r := AttemptRecord{
		V: 1, Time: e.Time, Launch: h.Name, Attempt: e.Attempt,
		Outcome: field("outcome"), Cause: field("cause"), Phase: field("phase"), Text: mask.String(field("text")),
	}
	r.Ready, _ = e.Fields["ready"].(bool)
	r.OutputCheck = checkOf(h.attemptFolder(e.Attempt).Events())
	if report, ok := h.reader.Report(); ok {
		r.Explain = explainJSON(report)
		h.launch.memory.numbers(e.Attempt, report.Numbers)
	}
	_ = writeJSON(h.attemptFolder(e.Attempt).Path+"/result.json", r)
}

// attemptFolder names the folder of an attempt; what happens before the first
// attempt is written beside it.
func (h *Hands) attemptFolder(attempt int) statedir.Attempt {
	return h.launch.Attempt(max(attempt, 1))
}

// takeAttempt makes the folder of an attempt, or takes the one that a
// supervisor before made.
func (h *Hands) takeAttempt(attempt int) {
	h.makeFolder(attempt)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.attempt != attempt {
		h.attempt, h.since, h.ours = attempt, time.Now(), map[int]bool{}
	}
}

// makeFolder does not wait for a disk that hangs. What the disk refuses is no
// error here: every write will say so.
func (h *Hands) makeFolder(attempt int) {
	ctx, cancel := context.WithTimeout(h.ctx, folderMargin)
	defer cancel()
	<-within(ctx, func() error { _, err := h.launch.NewAttempt(attempt); return err })
}

func (h *Hands) attemptContext() context.Context {
	ctx, cancel := context.WithCancel(h.ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ends != nil {
		h.ends()
	}
	h.ends = cancel
	return ctx
}

// endAttempt stops whatever watches the attempt.
func (h *Hands) endAttempt() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ends != nil {
		h.ends()
		h.ends = nil
	}
}

// member takes note of a process of the attempt.
func (h *Hands) member(attempt int, p wire.Proc) {
	h.mu.Lock()
	if attempt == h.attempt {
		h.ours[p.PID] = true
	}
	h.mu.Unlock()
	h.watch.member(attempt, p)
}

// counts are what the server has printed, and what was lost of it.
func (h *Hands) counts() serve.Output {
	o := h.reader.Counts()
	o.Dropped = h.dropped.Load() + h.launch.journal.Dropped()
	return o
}

// isOurs reports whether a pid ever belonged to the attempt.
func (h *Hands) isOurs(pid int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ours[pid]
}
