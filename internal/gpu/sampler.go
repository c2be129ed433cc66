package gpu

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// Times of a sampler.
const (
	firstInterval = time.Second      // until the client says otherwise
	pendingAfter  = time.Second      // a driver call that lasts longer is told
	openAgain     = 10 * time.Second // at first, between two tries to open a driver that refused
	openSlowest   = 2 * time.Minute
	quitPatience  = 30 * time.Second // for the call in flight: to end inside one can take the GPU along
)

// ServeSampler reads the driver and answers on out until in ends, it is told
// to quit, SIGTERM comes or ctx is done. It is the whole life of a sampler
// process and changes how the process takes signals.
//
// An error means that the process should end with a status of failure; that
// there is no driver is none.
func ServeSampler(ctx context.Context, in io.Reader, out io.Writer) error {
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	defer signal.Reset(syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	log := &callLog{}
	s := &sampler{
		driver:   newDriver(log),
		log:      log,
		out:      &lineWriter{w: out},
		commands: make(chan command),
		quit:     make(chan struct{}),
		interval: firstInterval,
	}
	return s.serve(ctx, in)
}

// sampler is the inside of a sampler process: poll asks the driver, and the
// others stay able to speak while it hangs.
type sampler struct {
	driver   driver
	log      *callLog
	out      *lineWriter
	commands chan command
	quit     chan struct{} // closed when it is time to go

	interval time.Duration
	last     time.Time // when the last round began
	snapshot int       // the newest one asked for and not yet answered; 0 = none
}

// errStuck ends a sampler whose driver call does not come back.
var errStuck = errors.New("cannot end the NVML sampler in good order: a driver call has not come back")

func (s *sampler) serve(ctx context.Context, in io.Reader) error {
	input := make(chan struct{})
	polled := make(chan error, 1)
	go func() {
		defer close(input)
		s.read(in)
	}()
	go func() { polled <- s.poll() }()
	watch := time.NewTicker(pendingAfter)
	defer watch.Stop()
	for {
		select {
		case <-input:
			return s.leave(polled)
		case <-ctx.Done():
			return s.leave(polled)
		case err := <-polled:
			close(s.quit)
			return err
		case <-watch.C:
			if p := s.log.longer(pendingAfter); p != nil {
				s.out.write(answer{Pending: p})
			}
		}
	}
}

// leave lets the call in flight end first.
func (s *sampler) leave(polled <-chan error) error {
	close(s.quit)
	select {
	case err := <-polled:
		return err
	case <-time.After(quitPatience):
		return errStuck
	}
}

// read takes commands until the input ends or says quit. What it cannot read
// it skips: a newer client may say more.
func (s *sampler) read(in io.Reader) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var c command
		if json.Unmarshal(lines.Bytes(), &c) != nil {
			continue
		}
		if c.Quit {
			return
		}
		select {
		case s.commands <- c:
		case <-s.quit:
			return
		}
	}
}

// poll is the only caller of the driver but for the Xid watch.
func (s *sampler) poll() error {
	opened, err := s.open()
	if !opened || err != nil {
		return err
	}
	defer s.driver.close()
	var watch sync.WaitGroup
	defer watch.Wait()
	over := make(chan struct{})
	defer close(over)
	watch.Go(func() { s.watchXids(over) })
	next := time.NewTimer(0)
	defer next.Stop()
	full := true
	for {
		select {
		case <-s.quit:
			return nil
		case c := <-s.commands:
			s.take(c)
			next.Reset(s.pause())
			continue
		case <-next.C:
		}
		if err := s.round(full); err != nil {
			return err
		}
		full = false
		next.Reset(s.pause())
	}
}

func (s *sampler) take(c command) {
	if c.IntervalMS > 0 {
		s.interval = time.Duration(c.IntervalMS) * time.Millisecond
	}
	s.snapshot = max(s.snapshot, c.Snapshot)
}

// pause is how long it is to the next round: none where a snapshot is wanted.
func (s *sampler) pause() time.Duration {
	if s.snapshot > 0 {
		return 0
	}
	return max(0, time.Until(s.last.Add(s.interval)))
}

func (s *sampler) round(full bool) error {
	s.last = time.Now()
	asked := s.snapshot
	sample := s.driver.sample(full || asked > 0, s.quit)
	s.snapshot = 0
	return s.out.write(answer{Sample: &sample, Snapshot: asked})
}

// open opens the driver, again and again with growing pauses where it refuses:
// a module may be loaded late, a fabric may come up. Each refusal is told as a
// sample. It returns false when it is time to go, or there is nothing to open.
func (s *sampler) open() (opened bool, err error) {
	for pause := openAgain; ; pause = min(2*pause, openSlowest) {
		began := time.Now()
		err := s.driver.open()
		if err == nil {
			return true, nil
		}
		var why *openError
		if !errors.As(err, &why) {
			return false, err
		}
		if why.absent {
			return false, s.out.write(answer{Absent: why.text})
		}
		refusal := &Sample{At: began, Took: time.Since(began), Err: why.text, Code: why.code}
		if err := s.out.write(answer{Sample: refusal, Snapshot: s.snapshot}); err != nil {
			return false, err
		}
		s.snapshot = 0
		if !s.wait(pause) {
			return false, nil
		}
	}
}

// wait returns true after the pause, or as soon as a snapshot is asked for.
func (s *sampler) wait(pause time.Duration) bool {
	again := time.NewTimer(pause)
	defer again.Stop()
	for {
		select {
		case <-s.quit:
			return false
		case <-again.C:
			return true
		case c := <-s.commands:
			if s.take(c); s.snapshot > 0 {
				return true
			}
		}
	}
}

// watchXids tells Xids as they come, until over is closed. A watch that keeps
// failing slows down: a lost GPU fails it at once, every time.
func (s *sampler) watchXids(over <-chan struct{}) {
	pause := time.Second
	for {
		select {
		case <-over:
			return
		default:
		}
		x, ok, err := s.driver.xid()
		switch {
		case errors.Is(err, errNoEvents):
			return
		case err != nil:
			select {
			case <-over:
				return
			case <-time.After(pause):
			}
			pause = min(2*pause, time.Minute)
		case ok:
			s.out.write(answer{Xid: &x})
		}
	}
}
