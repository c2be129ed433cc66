package supervisor

import (
	"time"

	"sglaunch/internal/history"
	"sglaunch/phases"
)

// spanBook tells from the output how long each rank spent in each phase, and
// how far the counters of a phase got. What it is told again, it tells again.
type spanBook struct {
	open   map[string]history.Span       // of each rank; zero Began = closed
	counts map[phases.Phase]history.Span // the launch's counter of each phase
}

// mostRanks bounds the book whatever the output says.
const mostRanks = 4096

func newSpanBook() spanBook {
	return spanBook{open: map[string]history.Span{}, counts: map[phases.Phase]history.Span{}}
}

// see takes an observation and returns the spans that it ends.
func (b spanBook) see(o phases.Observation, at time.Time) []history.Span {
	b.count(o)
	ended := b.close(o.Phase, at)
	if o.Rank == "" || o.Rank == "main" || o.RankPhase == phases.Starting || o.RankPhase >= phases.Ready {
		return ended // the parent's lines are the launch's; and who serves needs no span
	}
	open, known := b.open[o.Rank]
	switch {
	case !known && len(b.open) >= mostRanks:
		return ended
	case known && o.RankPhase <= open.Phase:
		b.countRank(open, o)
		return ended
	case known && !open.Began.IsZero():
		ended = append(ended, complete(open, at))
	}
	b.open[o.Rank] = history.Span{Rank: o.Rank, Phase: o.RankPhase, Began: at}
	b.countRank(b.open[o.Rank], o)
	return ended
}

// close ends what ranks do in phases that the whole launch has left.
func (b spanBook) close(launch phases.Phase, at time.Time) (ended []history.Span) {
	for rank, open := range b.open {
		if open.Phase < launch && !open.Began.IsZero() {
			ended = append(ended, complete(open, at))
			b.open[rank] = history.Span{Rank: rank, Phase: open.Phase}
		}
	}
	return ended
}

// cut ends everything unfinished.
func (b spanBook) cut(at time.Time) (ended []history.Span) {
	for rank, open := range b.open {
		if !open.Began.IsZero() {
			open.Took = at.Sub(open.Began)
			ended = append(ended, open)
		}
		delete(b.open, rank)
	}
	return ended
}

func complete(s history.Span, at time.Time) history.Span {
	s.Took, s.Complete = at.Sub(s.Began), true
	return s
}

// count keeps the largest counter of a phase: a draft model's few shards come
// after the many of the model.
func (b spanBook) count(o phases.Observation) {
	if o.Kind == phases.KindProgress && o.Total > 0 {
		b.counts[o.RankPhase] = counting(b.counts[o.RankPhase], o)
	}
}

func (b spanBook) countRank(s history.Span, o phases.Observation) {
	if o.Kind == phases.KindProgress && o.Total > 0 && s.Phase == o.RankPhase && !s.Began.IsZero() {
		b.open[o.Rank] = counting(s, o)
	}
}

func counting(s history.Span, o phases.Observation) history.Span {
	if o.Total >= s.Total {
		s.Done, s.Total, s.Unit = o.Done, o.Total, o.Unit
	}
	return s
}

// counted gives a span of the launch its phase's counter.
func (b spanBook) counted(s history.Span) history.Span {
	c := b.counts[s.Phase]
	s.Done, s.Total, s.Unit = c.Done, c.Total, c.Unit
	return s
}
