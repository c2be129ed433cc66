package machine

import (
	"encoding/json"
	"fmt"
	"time"
)

// snapshot is everything that a machine knows besides its options: where the
// journal is rotated, the new one begins with it.
type snapshot struct {
	State    State       `json:"state"`
	Wall     time.Time   `json:"wall"`
	Now      time.Time   `json:"now"`
	Deadline time.Time   `json:"deadline,omitzero"`
	Attempt  int         `json:"attempt"`
	Stop     *StopAsked  `json:"stop,omitempty"`
	Asks     int         `json:"asks,omitempty"`
	LastGood *LastGood   `json:"last_good,omitempty"`
	Suspects []string    `json:"suspects,omitempty"`
	Doubted  bool        `json:"doubted,omitempty"`
	Doubtful []string    `json:"doubtful,omitempty"`
	Bisect   bisect      `json:"bisect,omitzero"`
	Steps    []step      `json:"steps,omitempty"`
	Spent    []int       `json:"spent,omitempty"`
	Beside   []Neighbour `json:"beside,omitempty"`
	Budget   budget      `json:"budget"`
	Run      run         `json:"run"`
	Code     int         `json:"code,omitempty"`
}

// Snapshot returns all that the machine knows. Restore makes a machine
// of it that decides as this one does.
func (m *Machine) Snapshot() ([]byte, error) {
	data, err := json.Marshal(snapshot{
		m.state, m.wall, m.now, m.deadline, m.attempt, m.stop, m.asks,
		m.lastGood, m.suspects, m.doubted, m.doubtful, m.bisect, m.steps, m.spent, m.beside, m.budget, m.run, m.code,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot keep the machine's state: %w", err)
	}
	return data, nil
}

// Restore returns the machine that Snapshot has described.
func Restore(opt Options, data []byte) (*Machine, error) {
	m, err := New(opt)
	if err != nil {
		return nil, err
	}
	s := snapshot{State: StateIdle}
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("cannot restore the machine's state: %w", err)
	}
	m.state, m.wall, m.now, m.deadline, m.attempt, m.stop, m.asks = s.State, s.Wall, s.Now, s.Deadline, s.Attempt, s.Stop, s.Asks
	m.lastGood, m.suspects, m.doubted, m.doubtful, m.bisect, m.steps, m.spent, m.beside, m.budget, m.run, m.code =
		s.LastGood, s.Suspects, s.Doubted, s.Doubtful, s.Bisect, s.Steps, s.Spent, s.Beside, s.Budget, s.Run, s.Code
	return m, nil
}
