package conduct

import (
	"context"
	"fmt"
	"time"

	"sglaunch/internal/proc"
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
