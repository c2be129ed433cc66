package tune

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"sglaunch/internal/tune/stat"
)

// The fresh launches are made in blocks: one of the baseline and one of each
// finalist, side by side. Their order is drawn, so that nothing that comes and
// goes by the clock meets the same trial each time, and every other block is the
// one before it the other way round, so that a steady drift meets all alike and
// cancels.

// slotTries is how often a launch of a block is tried until it counts.
const slotTries = 2

// spareBlocks are made where launches came to nothing.
const spareBlocks = 3

// finalists are the best that are no worse than the baseline by more than the
// smallest effect that counts.
func (n *Night) finalists() []string {
	var ids []string
	for _, s := range n.standings(Screen, Narrow) {
		if len(ids) < n.plan.Study.Finalists && s.ratio > -math.Log1p(n.plan.Study.MinimumEffect) {
			ids = append(ids, s.trial)
		}
	}
	return ids
}

// confirm is the next launch of the blocks.
func (n *Night) confirm(now time.Time) step {
	for block := 1; block <= n.blocks(); block++ {
		members := slices.DeleteFunc(n.finalists(), func(id string) bool {
			mine, _ := n.pairs(id, block-1)
			return len(mine) >= n.plan.Study.Repeats
		})
		if len(members) == 0 {
			return stageDone
		}
		order := n.drawn(block, append([]string{BaselineID}, members...))
		if id, ok := n.nextOf(block, order, now); ok {
			return step{slot: Slot{Confirm, id, block}, why: fmt.Sprintf("fresh launches, block %d", block)}
		}
	}
	return stageDone
}

// drawn puts the members of a block into their order, by the seed of the night. A
// member's place among the others does not depend on who they are: one that has
// enough launches leaves the order of the rest as it was.
func (n *Night) drawn(block int, members []string) []string {
	lot := func(id string) string { return digest([]any{n.plan.Seed, (block - 1) / 2, id}) }
	slices.SortFunc(members, func(a, b string) int { return cmp.Compare(lot(a), lot(b)) })
	if block%2 == 0 {
		slices.Reverse(members)
	}
	return members
}

// nextOf is the next launch of a block that is needed and that time is left for.
func (n *Night) nextOf(block int, order []string, now time.Time) (id string, ok bool) {
	baseline, lost := n.inBlock(BaselineID, block)
	if lost {
		return "", false
	}
	for _, id := range order {
		if got, lost := n.inBlock(id, block); got != nil || lost {
			continue
		}
		need := n.cost(id)
		switch {
		case id != BaselineID && baseline == nil:
			need += n.cost(BaselineID)
		case id == BaselineID && n.emptyBlock(block, order):
			partner, some := n.cheapest(block, order)
			if !some {
				return "", false
			}
			need += n.cost(partner)
		}
		if n.fits(now, need) {
			return id, true
		}
	}
	return "", false
}

// cheapest is the finalist whose launch in a block takes least; ok is false where
// none is to be had any more, so that the baseline would stand there alone.
func (n *Night) cheapest(block int, order []string) (id string, ok bool) {
	for _, other := range order {
		if _, lost := n.inBlock(other, block); other == BaselineID || lost {
			continue
		}
		if !ok || n.cost(other) < n.cost(id) {
			id, ok = other, true
		}
	}
	return id, ok
}

// emptyBlock tells that no launch of a block counts yet.
func (n *Night) emptyBlock(block int, order []string) bool {
	return !slices.ContainsFunc(order, func(id string) bool {
		got, _ := n.inBlock(id, block)
		return got != nil
	})
}

// inBlock is the launch of a trial in a block that counts; lost tells that it
// was tried often enough.
func (n *Night) inBlock(trial string, block int) (got *sample, lost bool) {
	tried := 0
	for _, l := range n.of[trial] {
		if l.Slot != (Slot{Confirm, trial, block}) || !n.current(l) {
			continue
		}
		switch o := n.outcome(l); o.status {
		case scored:
			return &sample{l, o.score}, false
		case continued:
		default:
			tried++
		}
	}
	return nil, tried >= slotTries
}

// confirmed are the fresh launches of a trial that count.
func (n *Night) confirmed(trial string) []sample { return n.samples(trial, Confirm) }

// pairs are the scores of a trial and of the baseline in the blocks up to one
// that have both.
func (n *Night) pairs(trial string, upTo int) (mine, base []float64) {
	for b := 1; b <= upTo; b++ {
		m, _ := n.inBlock(trial, b)
		a, _ := n.inBlock(BaselineID, b)
		if m != nil && a != nil {
			mine, base = append(mine, m.score), append(base, a.score)
		}
	}
	return mine, base
}

// blocks is how many blocks there may be.
func (n *Night) blocks() int { return n.plan.Study.Repeats + spareBlocks }

// paired counts the blocks that have both a trial and the baseline.
func (n *Night) paired(trial string) int {
	mine, _ := n.pairs(trial, n.blocks())
	return len(mine)
}

// judge is the verdict over all that is recorded. The chance to be wrong is
// shared among the finalists.
func (n *Night) judge() Verdict {
	s := n.plan.Study
	finalists := n.finalists()
	level := 1 - (1-s.Confidence)/float64(max(1, len(finalists)))
	v := Verdict{Noise: n.noise(), Trend: n.trend()}
	for _, id := range finalists {
		mine, base := n.pairs(id, n.blocks())
		f := Finding{Trial: id, Ratio: stat.Welch(mine, base, level), Pairs: len(mine)}
		f.Won = f.Ratio.Above(1 + s.MinimumEffect)
		if !f.Won {
			f.Text = short(f.Ratio, s.MinimumEffect)
		}
		v.Findings = append(v.Findings, f)
	}
	slices.SortStableFunc(v.Findings, func(a, b Finding) int {
		return cmp.Or(boolean(b.Won)-boolean(a.Won), cmp.Compare(b.Ratio.Mid, a.Ratio.Mid))
	})
	if len(v.Findings) > 0 && v.Findings[0].Won {
		v.Winner = v.Findings[0].Trial
	}
	v.Text = n.sentence(v)
	return v
}

// short says what a finalist lacks.
func short(i stat.Interval, minimum float64) string {
	switch {
	case i.N == 0:
		return "it was not launched again beside the baseline"
	case !i.Known():
		return "one pair of launches has no interval"
	case i.High < 1:
		return "it is worse than the baseline"
	case i.Low > 1:
		return fmt.Sprintf("it is better, but perhaps by less than %.3g %%", 100*minimum)
	}
	return "the difference may be chance"
}

func (n *Night) sentence(v Verdict) string {
	if v.Winner != "" {
		return fmt.Sprintf("%s wins: %s against the baseline, in %d pairs of fresh launches",
			n.trials[v.Winner].Name, v.Findings[0].Ratio, v.Findings[0].Pairs)
	}
	if len(v.Findings) > 0 {
		return "no significant winner: the best, " + n.trials[v.Findings[0].Trial].Name + ", is at " +
			v.Findings[0].Ratio.String() + " against the baseline; " + v.Findings[0].Text
	}
	return "no significant winner: no trial came as far as the fresh launches"
}

// noise is how launches of one configuration scatter, 0 where it is unknown.
func (n *Night) noise() float64 {
	groups := [][]float64{scores(n.confirmed(BaselineID))}
	for _, id := range n.finalists() {
		groups = append(groups, scores(n.confirmed(id)))
	}
	sd, _ := stat.Noise(groups)
	return sd
}

// trendChance is how likely a trend may be by chance to be told.
const trendChance = 0.05

// trend is what the baseline changed over the night, where that is significant
// and not far below the effects that are looked for.
func (n *Night) trend() float64 {
	all := n.samples(BaselineID, Screen, Narrow, Confirm)
	times := make([]float64, len(all))
	for i, s := range all {
		times[i] = s.at.Sub(n.began).Seconds()
	}
	change, p := stat.Trend(times, scores(all))
	if p > trendChance || math.Abs(change) < math.Log1p(n.plan.Study.MinimumEffect)/2 {
		return 0
	}
	return change
}
