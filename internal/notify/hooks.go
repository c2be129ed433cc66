package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"sglaunch/internal/mask"
	"sglaunch/internal/serve"
)

// Hooks say who is told what. An empty argv is nobody.
type Hooks struct {
	OnReady     []string // the launch is announced
	OnStopping  []string // the end of a server that serves has begun; the signal follows
	OnFailure   []string // an attempt failed
	OnRecovered []string // announced again after a failure
	OnGaveUp    []string // no attempt is left
	OnStuck     []string // no progress for too long
	Webhook     string   // URL that gets all of these
	Limit       time.Duration
}

// Any reports whether anybody is to be told anything.
func (h Hooks) Any() bool {
	return h.Webhook != "" || slices.ContainsFunc(
		[][]string{h.OnReady, h.OnStopping, h.OnFailure, h.OnRecovered, h.OnGaveUp, h.OnStuck},
		func(argv []string) bool { return len(argv) > 0 })
}

// Bounds of telling one thing.
const (
	tries       = 3
	laneDepth   = 32
	answerShown = 200 // bytes of what a failing hook printed
)

// pauses between two tries.
var pauses = [tries - 1]time.Duration{time.Second, 3 * time.Second}

// Runner tells hooks and the webhook until Close.
type Runner struct {
	trouble func(error)
	env     []string
	client  http.Client // follows no redirect: it would ask elsewhere, and without the document

	stop   context.CancelFunc
	ctx    context.Context
	work   sync.WaitGroup
	mu     sync.Mutex // guards what follows
	o      Hooks
	closed bool
	lanes  map[string]chan job // by hook: one that hangs delays its own kind alone

	failed    bool // an attempt failed since the launch was announced last
	announced bool // the server of this attempt serves
}

// job is one telling.
type job struct {
	name  string
	argv  []string // nil: the webhook
	url   string   // of the webhook
	doc   []byte
	limit time.Duration
}

// Before is what a supervisor that has died had told.
type Before struct {
	Announced bool // the server of this attempt serves
	Failed    bool // an attempt failed, and none was announced since
}

// NewRunner returns a runner that tells trouble, from any goroutine, what could
// not be told to a hook after all tries.
func NewRunner(o Hooks, before Before, trouble func(error)) *Runner {
	ctx, stop := context.WithCancel(context.Background())
	return &Runner{
		o: o, trouble: trouble, env: WithoutService(os.Environ()), announced: before.Announced, failed: before.Failed,
		client: http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		ctx:    ctx, stop: stop, lanes: map[string]chan job{},
	}
}

// Change tells others from now on; what is queued is told as it was to be.
func (r *Runner) Change(o Hooks) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.o = o
}

// Told takes every event of a launch, in order, and never waits.
func (r *Runner) Told(e serve.Envelope) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	switch e.Event {
	case "attempt_started":
		r.announced = false
	case "announced":
		r.announced = true
		r.tell("on_ready", r.o.OnReady, e)
		if r.failed {
			r.failed = false
			r.tell("on_recovered", r.o.OnRecovered, e)
		}
	case "stopping":
		if r.announced {
			r.announced = false
			r.tell("on_stopping", r.o.OnStopping, e)
		}
	case "verdict":
		if e.Word("outcome") == "hung" {
			r.tell("on_stuck", r.o.OnStuck, e)
		}
	case "attempt_ended":
		r.announced = false
		if e.Word("outcome") != "stopped" {
			r.failed = true
			r.tell("on_failure", r.o.OnFailure, e)
		}
	case "gave_up":
		r.tell("on_gave_up", r.o.OnGaveUp, e)
	}
}

// tell queues one event for one hook and for the webhook.
func (r *Runner) tell(hook string, argv []string, e serve.Envelope) {
	doc := document(hook, e)
	if len(argv) > 0 {
		r.queue(hook, job{name: hook, argv: argv, doc: doc, limit: r.o.Limit})
	}
	if r.o.Webhook != "" {
		r.queue("webhook", job{name: "webhook", url: r.o.Webhook, doc: doc, limit: r.o.Limit})
	}
}

func (r *Runner) queue(lane string, j job) {
	c := r.lanes[lane]
	if c == nil {
		c = make(chan job, laneDepth)
		r.lanes[lane] = c
		r.work.Go(func() {
			for j := range c {
				r.do(j)
			}
		})
	}
	select {
	case c <- j:
	default:
		r.work.Go(func() { // who hears of trouble may be slow
			r.trouble(fmt.Errorf("cannot tell %s: %d earlier events wait for it", j.name, laneDepth))
		})
	}
}

// shown are the fields that leave the house: names and numbers, no line of the
// server's output.
var shown = []string{"outcome", "cause", "phase", "ready", "seconds", "code", "degraded", "acted", "by", "restart"}

// document is what a hook reads: the envelope with the hook's name.
func document(hook string, e serve.Envelope) []byte {
	fields := map[string]any{"hook": hook}
	for _, name := range shown {
		if v, ok := e.Fields[name]; ok && v != "" {
			fields[name] = v
		}
	}
	e.Text, e.Fields = "", fields
	doc, err := json.Marshal(e)
	if err != nil {
		return []byte("{}\n") // strings, numbers and truths always encode
	}
	return append(doc, '\n')
}

// do tries a few times.
func (r *Runner) do(j job) {
	var err error
	for try := range tries {
		if try > 0 {
			select {
			case <-time.After(pauses[try-1]):
			case <-r.ctx.Done():
				r.trouble(err)
				return
			}
		}
		again := r.once(j)
		if again == nil {
			return
		}
		if err == nil || r.ctx.Err() == nil { // that it was cut short explains nothing
			err = again
		}
	}
	r.trouble(err)
}

func (r *Runner) once(j job) error {
	ctx, cancel := context.WithTimeout(r.ctx, j.limit)
	defer cancel()
	if j.argv == nil {
		return r.post(ctx, j)
	}
	return r.run(ctx, j)
}

// run starts a hook in a process group of its own and ends the whole group at
// its limit.
func (r *Runner) run(ctx context.Context, j job) error {
	var said tail
	cmd := exec.CommandContext(ctx, j.argv[0], j.argv[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = r.env, bytes.NewReader(j.doc), &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // for a grandchild that holds its output
	err := cmd.Run()
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay): // it ended well, and left somebody with its output
		return nil
	case ctx.Err() != nil && r.ctx.Err() == nil:
		return fmt.Errorf("cannot run %s (%q): it took longer than %s", j.name, j.argv[0], j.limit)
	case r.ctx.Err() != nil:
		return fmt.Errorf("cannot run %s (%q): it was ended, for the launch was over and waited no longer than %s", j.name, j.argv[0], j.limit)
	case len(said.last) > 0:
		return fmt.Errorf("cannot run %s (%q): %w: %s", j.name, j.argv[0], err, serve.Plain(mask.String(string(said.last))))
	}
	return fmt.Errorf("cannot run %s (%q): %w", j.name, j.argv[0], err)
}

func (r *Runner) post(ctx context.Context, j job) error {
	where := mask.URL(j.url)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, j.url, bytes.NewReader(j.doc))
	if err != nil {
		return fmt.Errorf("cannot tell the webhook %q: its URL is wrong", where)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "sglaunch")
	answer, err := r.client.Do(req)
	switch {
	case err != nil && r.ctx.Err() != nil:
		return fmt.Errorf("cannot tell the webhook %q: the launch was over and waited no longer than %s", where, j.limit)
	case err != nil:
		return fmt.Errorf("cannot tell the webhook %q: %s", where, withoutURL(err))
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, 64<<10)
	if answer.StatusCode >= 300 {
		return fmt.Errorf("cannot tell the webhook %q: it answers %s", where, answer.Status)
	}
	return nil
}

// withoutURL drops the URL, which may hold a token.
func withoutURL(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, `": `); i >= 0 {
		return text[i+3:]
	}
	return text
}

// Close lets what is queued be told, for one limit at most, and ends it then.
func (r *Runner) Close() {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		for _, c := range r.lanes {
			close(c)
		}
	}
	limit := r.o.Limit
	r.mu.Unlock()
	ended := make(chan struct{})
	go func() { r.work.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(limit):
	}
	r.stop()
	<-ended
	r.client.CloseIdleConnections()
}

// tail keeps the newest bytes of what a hook prints.
type tail struct{ last []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.last = append(t.last, p...)
	if n := len(t.last); n > answerShown {
		t.last = append(t.last[:0], t.last[n-answerShown:]...)
	}
	return len(p), nil
}
