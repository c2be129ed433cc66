package conduct

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"sglaunch/internal/config"
	"sglaunch/internal/gpu"
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
	s.words.learn(night.Plan())
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
		err = statedir.Replace(path, page.Bytes())
	}
	if err != nil {
		s.tell("the report could not be written: " + err.Error())
		return
	}
	s.tell("the report of the night: " + path)
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
