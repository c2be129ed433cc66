package conduct

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/google/renameio/v2"

	"sglaunch/internal/config"
	"sglaunch/internal/gpu"
	"sglaunch/internal/mask"
	"sglaunch/internal/preflight"
	"sglaunch/internal/statedir"
	"sglaunch/internal/tune"
	"sglaunch/internal/tune/report"
)

// Options say what night is performed, and where.
type Options struct {
	State   statedir.Dir
	Program []string // argv of sglaunch itself
	Study   tune.Study
	Base    config.Config // what Study.Base says
	Source  gpu.Source    // of the GPUs' news; Run closes it
	Asked   <-chan string // who wants the trials to end, and the morning to come
	Tell    func(string)  // a line for a person
}

// Run performs a night, or takes up the one that the study's journal holds, and
// stays the parent of what serves afterwards. It returns the exit code of the
// launch that served, or of the night where nothing did. When ctx ends, what
// runs is stopped in order, and the next Run goes on.
func Run(ctx context.Context, o Options) (int, error) {
	s, err := newSite(o)
	if err != nil {
		o.Source.Close()
		return 0, err
	}
	defer s.eyes.close()
	journal, raw, cut, err := OpenJournal(s.dir)
	if err != nil {
		return 0, fmt.Errorf("cannot work on the study %q: %w", s.study.Name, err)
	}
	defer journal.Close()
	if cut > 0 {
		s.tell(fmt.Sprintf("the journal's last line was not finished; %d bytes were cut off", cut))
	}
	records, err := Decode(raw)
	if err != nil {
		return 0, err
	}
	if s.relay, err = openRelay(filepath.Join(s.state.Runtime, trialName(s.study.Name)+".notify")); err != nil {
		return 0, err
	}
	defer s.relay.close()
	defer context.AfterFunc(ctx, s.relay.stop)()
	if err := s.sweep(ctx); err != nil {
		return 0, err
	}
	return s.perform(ctx, journal, records)
}

// perform goes through the night from where its records left it, to its end.
func (s *site) perform(ctx context.Context, journal *Journal, records []tune.Record) (int, error) {
	night, err := tune.Fold(records)
	if err != nil {
		return 0, err
	}
	handed := handedOver(records)
	if night.Done() {
		return s.afterwards(ctx, handed)
	}
	c := &conductor{night: night, memory: journal, hands: s, asked: s.asked}
	if err := s.resume(ctx, c, handed); err != nil {
		if s.taken && ctx.Err() == nil {
			return s.emergency(ctx, err)
		}
		return 0, err
	}
	s.trials = night.Plan().Trials
	s.words.learn(s.trials)
	end, err := c.run(ctx)
	s.remember(ctx, night)
	switch {
	case ctx.Err() != nil:
		return 0, nil
	case err != nil:
		return s.emergency(ctx, err)
	}
	s.report(night)
	if end.Serving == 0 {
		return end.Code, errors.New(end.Text)
	}
	return s.stay(ctx, c.launch.(*attempt).server), nil // it was handed over, so it is open
}

// report lays what was found beside the journal, as a page that stands alone.
func (s *site) report(night *tune.Night) {
	var page bytes.Buffer
	path := s.path("report.html")
	err := report.HTML(&page, night.Summary())
	if err == nil {
		err = renameio.WriteFile(path, page.Bytes(), statedir.FileMode)
	}
	if err != nil {
		s.tell("the report could not be written: " + err.Error())
		return
	}
	s.tell("the report of the night: " + path)
}

func newSite(o Options) (*site, error) {
	dir, err := o.State.Study(o.Study.Name)
	if err != nil {
		return nil, err
	}
	s := &site{
		state: o.State, dir: dir, program: o.Program, study: o.Study, base: o.Base,
		began: time.Now(), tell: o.Tell, asked: o.Asked, folder: o.Base.Server.Directory,
	}
	if s.folder == "" {
		if s.folder, err = os.Getwd(); err != nil {
			return nil, fmt.Errorf("cannot find the working directory: %w", err)
		}
	}
	if s.env, err = o.Base.Server.Environ(os.Environ()); err != nil {
		return nil, err
	}
	s.eyes = openEyes(o.Source, s.devices)
	return s, nil
}

// devices are the GPUs that the base's server uses.
func (s *site) devices(sample gpu.Sample) []gpu.GPU {
	if uuids := s.base.GPU.Devices.UUIDs; len(uuids) > 0 {
		if picked, err := gpu.Select(uuids, sample.GPUs); err == nil {
			return picked
		}
	}
	picked, _ := gpu.Devices(s.base.Server.Command, s.env, s.folder, sample.GPUs)
	return picked
}

// Decode reads what a journal holds as the records of a night.
func Decode(raw []json.RawMessage) ([]tune.Record, error) {
	records := make([]tune.Record, len(raw))
	for i, text := range raw {
		if err := json.Unmarshal(text, &records[i]); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// handedOver is the launch that the night has left serving; 0: none.
func handedOver(records []tune.Record) (launch int) {
	for _, r := range records {
		switch b := r.Body.(type) {
		case tune.Serving:
			launch = b.Launch
		case tune.Resumed:
			if !b.Serving {
				launch = 0
			}
		}
	}
	return launch
}

// resume writes down that the night goes on, and by which plan. A night that
// begins takes over what runs first, by the study's contract.
func (s *site) resume(ctx context.Context, c *conductor, handed int) error {
	fresh := c.night.Began().IsZero()
	serving := s.serving()
	if serving == nil {
		if err := s.unclaimed(); err != nil {
			return err
		}
	}
	plan, err := s.plan(ctx, c.night)
	if err != nil {
		return err
	}
	if serving == nil {
		if err := s.clear(ctx); err != nil {
			return err
		}
	}
	if fresh || !same(plan, c.night.Plan()) {
		if err := c.note(plan); err != nil {
			return err
		}
	}
	if fresh {
		return nil
	}
	return s.takeUp(c, serving, handed)
}

// takeUp tells the night that it was interrupted. Only a launch that was handed
// over may live on; one that was still to prove itself is started again.
func (s *site) takeUp(c *conductor, serving *Launch, handed int) error {
	kept := serving != nil && handed > 0
	if serving != nil && !kept {
		if !serving.Stop("sglaunch tune: the morning was interrupted", s.longest()) {
			return fmt.Errorf("cannot go on: process %d of an interrupted launch does not end", serving.shim.PID)
		}
	}
	if kept {
		c.launch = &attempt{site: s, n: handed, began: time.Now(), config: s.base, server: serving}
	}
	return c.note(tune.Resumed{Serving: kept})
}

// clear makes sure that nobody serves where the night wants to: a launch by its
// contract, anybody else not at all.
func (s *site) clear(ctx context.Context) error {
	if err := s.takeOver(ctx); err != nil {
		return err
	}
	if busy := preflight.BusyPorts(s.base.Server.Command, s.env, s.folder); len(busy) > 0 {
		return fmt.Errorf("cannot tune: %s; nothing is ended that is not the study's own", busy[0])
	}
	return nil
}

// plan is what the study means on this machine, today. A night that begins must
// be able to answer its question; one that goes on only keeps its deadline.
func (s *site) plan(ctx context.Context, night *tune.Night) (tune.Planned, error) {
	p, err := s.survey(ctx)
	if err != nil {
		return tune.Planned{}, err
	}
	if !night.Began().IsZero() {
		p.Planned.Deadline = night.Deadline() // a resumed night has no more time
		return p.Planned, nil
	}
	for _, w := range p.Warnings {
		s.tell("note: " + w)
	}
	if len(p.Problems) > 0 {
		return tune.Planned{}, &RefusedError{p}
	}
	return p.Planned, nil
}

// same tells whether two plans are one, as a journal writes them.
func same(a, b tune.Planned) bool {
	var x, y any
	p, _ := json.Marshal(a)
	q, _ := json.Marshal(b)
	return json.Unmarshal(p, &x) == nil && json.Unmarshal(q, &y) == nil && reflect.DeepEqual(x, y)
}

// afterwards serves what a night that is over has left serving.
func (s *site) afterwards(ctx context.Context, launch int) (int, error) {
	if launch == 0 {
		return 0, fmt.Errorf("the night of %q is over, and nothing serves; sglaunch tune report tells why; to begin anew, move %q away", s.study.Name, s.dir)
	}
	l := s.serving()
	if l == nil {
		if err := s.unclaimed(); err != nil {
			return 0, err
		}
		s.tell(fmt.Sprintf("the night of %q is over; what it left serving is started again", s.study.Name))
		var err error
		if l, err = s.again(launch); err != nil {
			return 0, err
		}
	}
	return s.stay(ctx, l), nil
}

// stay serves on.
func (s *site) stay(ctx context.Context, l *Launch) int {
	s.tell(fmt.Sprintf("%q serves as process %d; the end of this command ends it", l.Name, l.shim.PID))
	return s.serveOn(ctx, l, s.longest())
}

// emergency makes the base serve where the night cannot go on: a journal on a
// full disk must not leave a machine without a server.
func (s *site) emergency(ctx context.Context, cause error) (int, error) {
	s.tell("the night cannot go on: " + cause.Error() + "; the base is started as it is")
	l, err := startLaunch(s.base.Server.Name, s.state, program{s.program, s.study.Base, "", s.service()}, true)
	if err != nil {
		return 0, errors.Join(cause, err)
	}
	s.giveBack(ctx)
	return s.stay(ctx, l), nil
}

// noted does what follows from a record that is on disk.
func (s *site) noted(r tune.Record) {
	if text := mask.String(s.words.line(r)); text != "" {
		s.tell(text)
		s.relay.say("STATUS=" + text)
	}
	switch b := r.Body.(type) {
	case tune.Decided:
		s.keepWinner(b.Verdict.Winner)
	case tune.Serving:
		s.giveBack(context.Background())
	}
}

// keepWinner lays the winner beside, ready for use.
func (s *site) keepWinner(id string) {
	i := slices.IndexFunc(s.trials, func(t tune.Trial) bool { return t.ID == id })
	if i < 0 {
		return
	}
	path, err := s.dropIn("winner.toml", s.trials[i])
	if err != nil {
		s.tell("the winner's launch.toml could not be written: " + err.Error())
		return
	}
	s.tell("the winner is ready for use: sglaunch run -c " + path)
}
