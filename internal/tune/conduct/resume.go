package conduct

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"sglaunch/internal/preflight"
	"sglaunch/internal/proc"
	"sglaunch/internal/tune"
	"sglaunch/supervisor"
)

const sweepLimit = 30 * time.Second

// sweep ends what a tuner that was killed has left behind: the launch of a
// trial in order, then whatever else of the night still lives. It touches
// nothing that serves, and nothing that is not marked as the study's own.
func (s *site) sweep(ctx context.Context) error {
	if l := findLaunch(trialName(s.study.Name), s.state, false); l != nil && proc.HasEnv(l.shim.PID, s.marker()) {
		s.tell(fmt.Sprintf("the launch of a trial that was interrupted is being ended (process %d)", l.shim.PID))
		if !l.Stop("sglaunch tune: the trial was interrupted", s.longest()) {
			return fmt.Errorf("cannot go on: process %d of an interrupted trial does not end", l.shim.PID)
		}
	}
	limited, cancel := context.WithTimeout(ctx, sweepLimit)
	defer cancel()
	if len(s.leftovers()) > 0 {
		if gone, left := proc.KillAll(limited, proc.Membership{Marker: s.marker()}); !gone {
			return fmt.Errorf("cannot go on: %d processes of an interrupted trial do not end: %v", len(left), left)
		}
	}
	healed, err := supervisor.Recover(limited, s.state)
	for _, h := range healed {
		s.tell(fmt.Sprintf("healed what launch %s left behind: %d processes ended, %d files restored", h.Launch, h.Killed, len(h.Restored)))
	}
	return err
}

// longest is how long a launch of the base may take to end.
func (s *site) longest() time.Duration {
	return (&attempt{site: s, config: s.base}).longestStop()
}

// serving finds the launch that this study left serving; nil: none does.
func (s *site) serving() *Launch {
	l := findLaunch(s.base.Server.Name, s.state, true)
	if l == nil || !proc.HasEnv(l.shim.PID, s.servingMarker()) {
		return nil
	}
	return l
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
	if busy := preflight.BusyPorts(s.baseCommand()); len(busy) > 0 {
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
		p.Planned.Deadline, p.Planned.Seed = night.Deadline(), night.Plan().Seed // a resumed night has no more time, and the same order
		s.tellMoved()
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

// tellMoved says which clients do not run where the study wants them.
func (s *site) tellMoved() {
	for _, l := range s.study.Loads {
		if place := s.clients[l.Name]; place.moved != "" {
			s.tell(fmt.Sprintf("note: the load %s names the CPUs %s for its client, and not all of them are there any more (%s are); the night goes on with it on %s, and says so beside each figure",
				l.Name, l.CPUs, tune.CPUsText(ourCPUs()), place))
		}
	}
}

// same tells whether two plans are one, as a journal writes them.
func same(a, b tune.Planned) bool {
	var x, y any
	p, _ := json.Marshal(a)
	q, _ := json.Marshal(b)
	return json.Unmarshal(p, &x) == nil && json.Unmarshal(q, &y) == nil && reflect.DeepEqual(x, y)
}
