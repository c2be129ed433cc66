package conduct

import (
	"context"
	"math"
	"time"

	"sglaunch/internal/history"
	"sglaunch/internal/tune"
	"sglaunch/internal/tune/stat"
)

// remember leaves to later nights what the launches of this one measured. History
// is a convenience: what goes wrong is told, and the night goes on.
func (s *site) remember(ctx context.Context, n *tune.Night) {
	var trials []history.Trial
	sum := n.Summary()
	for _, l := range sum.Launches {
		if l.Counts && l.ID != "" {
			trials = append(trials, history.Trial{
				Launch: l.ID, Study: s.study.Name, Night: sum.Began, Trial: l.Trial.ID, Name: l.Trial.Name, Stage: string(l.Slot.Stage),
				Machine: s.machine(), Model: s.model(), Metric: s.study.Objective.Metric, Value: l.Value, At: l.Over,
			})
		}
	}
	if len(trials) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), historyLimit)
	defer cancel()
	db, err := history.Open(ctx, s.state.History())
	if err == nil {
		defer db.Close()
		err = db.RecordTrials(ctx, trials...)
	}
	if err != nil {
		s.tell(err.Error())
	}
}

// newestTrials are what is read of earlier nights.
const newestTrials = 200

// noise is how launches of the baseline scattered here in earlier nights; 0 where
// that is unknown.
func (s *site) noise(ctx context.Context) float64 {
	ctx, cancel := context.WithTimeout(ctx, historyLimit)
	defer cancel()
	db, err := history.OpenToRead(ctx, s.state.History())
	if err != nil {
		return 0
	}
	defer db.Close()
	trials, err := db.Trials(ctx, s.machine(), s.model(), s.study.Objective.Metric, newestTrials)
	if err != nil {
		return 0
	}
	var nights [][]float64
	var night time.Time
	for _, t := range trials {
		if t.Trial != tune.BaselineID || t.Value <= 0 {
			continue
		}
		if len(nights) == 0 || !t.Night.Equal(night) {
			nights, night = append(nights, nil), t.Night
		}
		nights[len(nights)-1] = append(nights[len(nights)-1], math.Log(t.Value))
	}
	sd, _ := stat.Stepwise(nights...)
	return sd
}

func (s *site) machine() string { return history.Machine(s.base.GPU.Devices.UUIDs) }

func (s *site) model() string {
	return s.baseCommand().Server().Model
}
