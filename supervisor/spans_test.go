package supervisor

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sglaunch/internal/history"
	"sglaunch/phases"
)

// at says that a rank is in a phase; the launch is in the slowest one's.
func at(rank string, rankPhase, launch phases.Phase) phases.Observation {
	return phases.Observation{Kind: phases.KindPhase, Rank: rank, RankPhase: rankPhase, Phase: launch}
}

func count(rank string, p phases.Phase, done, total int64) phases.Observation {
	return phases.Observation{Kind: phases.KindProgress, Rank: rank, RankPhase: p, Phase: p, Done: done, Total: total, Unit: "shards"}
}

func byRank(a, b history.Span) int {
	if a.Rank != b.Rank {
		return strings.Compare(a.Rank, b.Rank)
	}
	return int(a.Phase) - int(b.Phase)
}

func TestSpansOfRanks(t *testing.T) {
	const init, load, kv = phases.DistributedInit, phases.LoadingWeights, phases.KVCache
	b := newSpanBook()
	var ended []history.Span
	for i, o := range []phases.Observation{
		at("TP0", init, phases.Starting), at("TP1", init, init),
		at("TP0", load, init), at("TP1", load, load), // 2, 3
		count("TP0", load, 41, 83), count("TP0", load, 83, 83), count("TP0", load, 1, 1), // 4, 5; a draft model
		at("main", kv, load), at("", kv, load), // no ranks
		at("TP0", kv, load), at("TP0", load, load), // 9; a second pass moves nothing back
		at("TP1", kv, kv),                        // 11
		at("main", phases.Warmup, phases.Warmup), // 12: the launch leaves them behind
		at("TP0", phases.Serving, phases.Serving),
	} {
		ended = append(ended, b.see(o, dawn.Add(time.Duration(i)*time.Minute))...)
	}
	slices.SortFunc(ended, byRank)
	want := []history.Span{
		{Rank: "TP0", Phase: init, Began: dawn, Took: 2 * time.Minute, Complete: true},
		{Rank: "TP0", Phase: load, Began: dawn.Add(2 * time.Minute), Took: 7 * time.Minute, Complete: true, Done: 83, Total: 83, Unit: "shards"},
		{Rank: "TP0", Phase: kv, Began: dawn.Add(9 * time.Minute), Took: 3 * time.Minute, Complete: true},
		{Rank: "TP1", Phase: init, Began: dawn.Add(time.Minute), Took: 2 * time.Minute, Complete: true},
		{Rank: "TP1", Phase: load, Began: dawn.Add(3 * time.Minute), Took: 8 * time.Minute, Complete: true},
		{Rank: "TP1", Phase: kv, Began: dawn.Add(11 * time.Minute), Took: time.Minute, Complete: true},
	}
	if diff := cmp.Diff(want, ended); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(history.Span{Phase: load, Done: 83, Total: 83, Unit: "shards"}, b.counted(history.Span{Phase: load})); diff != "" {
		t.Error(diff)
	}
	if left := b.cut(dawn.Add(time.Hour)); len(left) > 0 {
		t.Errorf("%v go on in service", left)
	}
}

func TestSpansThatAreCutTeachNothing(t *testing.T) {
	b := newSpanBook()
	b.see(at("TP0", phases.LoadingWeights, phases.LoadingWeights), dawn)
	left := b.cut(dawn.Add(time.Minute))
	if len(left) != 1 || left[0].Complete || left[0].Took != time.Minute {
		t.Errorf("cut to %+v", left)
	}
}

// Whatever is seen, each phase of a rank ends once, later than it began, and
// the book stays bounded.
func TestSpansOfAnyOutput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, now, told := newSpanBook(), dawn, map[history.Span]bool{}
		for range rapid.IntRange(0, 200).Draw(t, "lines") {
			now = now.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "seconds")) * time.Second)
			o := at(rapid.SampledFrom([]string{"", "main", "TP0", "TP1", "DP1 TP0"}).Draw(t, "rank"),
				rapid.SampledFrom(phases.Phases()).Draw(t, "of rank"), rapid.SampledFrom(phases.Phases()).Draw(t, "of launch"))
			if rapid.Bool().Draw(t, "counts") {
				o.Kind, o.Done, o.Total = phases.KindProgress, 1, 2
			}
			for _, s := range b.see(o, now) {
				key := history.Span{Rank: s.Rank, Phase: s.Phase}
				if told[key] || s.Took < 0 || !s.Complete || s.Rank == "" || s.Rank == "main" || s.Phase >= phases.Ready {
					t.Fatalf("%+v, told before: %t", s, told[key])
				}
				told[key] = true
			}
		}
		if len(b.open) > 3 {
			t.Fatalf("%d ranks are open", len(b.open))
		}
	})
}
