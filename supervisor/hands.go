package supervisor

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"sglaunch/internal/gpu"
	"sglaunch/internal/sglangcmd"
	"sglaunch/internal/shim/wire"
	"sglaunch/supervisor/machine"
)

// hands performs effects. Each that takes time runs in a goroutine of its own
// under its own limit and posts its result; none holds the loop.
type hands struct {
	Setup
	ctx    context.Context
	conn   *wire.Conn
	loop   *loop
	reader *reader
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

	live      atomic.Pointer[Settings]          // those in force
	began     atomic.Pointer[sglangcmd.Command] // the server's command as the attempt began with it
	leave     chan string                       // the program that is to follow this one
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

func newHands(ctx context.Context, conn *wire.Conn, s Setup, l *launch) *hands {
	ctx, endWork := context.WithCancel(ctx)
	h := &hands{
		Setup: s, ctx: ctx, endWork: endWork, conn: conn, launch: l, leave: make(chan string, 1), ending: make(chan struct{}),
		orders: make(chan wire.Message, orderDepth), records: make(chan envelope, recordDepth), samples: make(chan sampleLine, 64),
		ours: map[int]bool{}, gpus: gpu.Absent("not looked at"),
	}
	h.live.Store(&h.Settings)
	return h
}

// settings are those in force; a reload replaces them as a whole.
func (h *hands) settings() *Settings { return h.live.Load() }

// begin takes up the work: on a launch that already runs, its output is
// followed from where the supervisor before stopped.
func (h *hands) begin(loop *loop, hello *wire.Hello, l *launch) {
	h.loop = loop
	h.reader = newReader(h.conn, h.settings().Rules, hello, loop.Post)
	h.restarts = hello.Restarts
	h.reread.attempt, h.reread.to = hello.Attempt, hello.Output
	h.reader.OnOutput = h.output
	h.reader.OnMember = h.member
	h.reader.OnSpawned = func(attempt int, p wire.Proc) { h.watch.attempt(h.attemptContext(), attempt, p) }
	h.reader.OnTrouble = func(text string) { loop.Post(0, machine.SourceLost{Source: machine.SourceShim, Reason: text}) }
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
		if err := h.reader.Follow(hello.Attempt, l.seen.Count[hello.Attempt], l.seen.To[hello.Attempt]); err == nil && hello.Server != nil && !hello.TreeGone {
			h.watch.attempt(h.attemptContext(), hello.Attempt, *hello.Server)
		}
	}
}

// close ends what is under way and writes what was told. Work that hangs, on a
// disk or a driver, is left behind: what it still says goes nowhere.
func (h *hands) close() {
	h.endAttempt()
	h.front.close()
	_ = h.gpus.Close() // what a hanging driver leaves behind is named by the source itself
	h.endWork()
	awaitGroup(&h.work, workMargin)
	close(h.ending)
	awaitGroup(&h.writers, recordMargin)
}
