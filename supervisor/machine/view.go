package machine

import (
	"time"

	"sglaunch/internal/shim/wire"
	"sglaunch/phases"
)

// ActivePatches lists the patches in force in the current attempt.
func (m *Machine) ActivePatches() []ActivePatch { return m.run.Patches }

// View is what a machine says of itself at one moment, for those who show it.
// It shares nothing with the machine. Times are those of the wall clock; zero
// is not yet.
type View struct {
	State     State
	Attempt   int
	Server    *wire.Proc
	Phase     phases.Phase
	Spawned   time.Time
	Phased    time.Time // the phase began
	Moved     time.Time // newest proof of progress
	MovedBy   string
	Ready     time.Time
	Announced time.Time
	Deadline  time.Time // when the machine acts if nothing happens
	Degraded  []string
	Verdict   string // what it would act on, were it allowed to; "" = nothing
	Stop      *StopAsked
}

// View returns what the machine says of itself now.
func (m *Machine) View() View {
	v := View{State: m.state, Attempt: m.attempt, Degraded: m.Degraded()}
	if m.stop != nil {
		stop := *m.stop
		v.Stop = &stop
	}
	if at, armed := m.Deadline(); armed {
		v.Deadline = at
	}
	if m.run.SpawnedAt.IsZero() {
		return v
	}
	if m.run.Server != nil && m.run.Exited == nil && !m.run.TreeGone {
		server := *m.run.Server
		v.Server = &server
	}
	v.Phase, v.MovedBy, v.Verdict = m.run.Phase, m.run.MovedBy, m.withheld()
	v.Spawned, v.Phased = m.onWall(m.run.SpawnedAt), m.onWall(m.run.PhaseAt)
	v.Moved, v.Ready, v.Announced = m.onWall(m.run.Moved), m.onWall(m.run.ReadyAt), m.onWall(m.run.AnnouncedAt)
	return v
}

// onWall turns a time of the machine's clock into one of the wall clock.
func (m *Machine) onWall(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return m.wall.Add(t.Sub(m.now))
}
