package supervisor

import (
	"slices"

	"sglaunch/internal/sglangcmd"
	"sglaunch/patch"
	"sglaunch/phases"
	"sglaunch/supervisor/machine"
)

// proof collects what the output shows of one patch and tells each verdict
// once.
type proof struct {
	name     string
	facts    patch.Facts
	expected int // ranks on this node
	phase    phases.Phase
	began    []string
	proved   []string
	ranks    []string
	over     bool
	told     patch.Effectiveness
}

func newProof(name string, f patch.Facts, c sglangcmd.Command) *proof {
	p := &proof{name: name, facts: f, expected: c.Server().GPUs()}
	p.phase, _ = phases.ParsePhase(f.Patch.Proof.Phase)
	p.reset()
	return p
}

func (p *proof) reset() {
	p.began, p.proved, p.ranks, p.over, p.told = nil, nil, nil, false, patch.Unknown
}

// seen takes an observation; news is true when the verdict has changed to one
// worth telling.
func (p *proof) seen(o phases.Observation) (verdict machine.Proven, news bool) {
	if o.Rank == "main" && p.expected > 1 {
		return machine.Proven{}, false // the parent's lines; its ranks speak for themselves
	}
	if o.Rank != "" && !slices.Contains(p.ranks, o.Rank) && o.RankPhase >= phases.DistributedInit {
		p.ranks = append(p.ranks, o.Rank)
	}
	if p.phase != 0 && o.Kind == phases.KindPhase {
		switch {
		case o.RankPhase == p.phase:
			p.began = add(p.began, o.Rank)
		case o.RankPhase > p.phase && slices.Contains(p.began, o.Rank):
			p.proved = add(p.proved, o.Rank)
		}
	}
	if o.Phase > max(p.phase, phases.KVCache) {
		p.over = true
	}
	v := patch.Effect(p.facts, patch.Seen{Expected: p.expectedRanks(), Began: p.began, Proved: p.proved, Over: p.over})
	if v.Effect == p.told || v.Effect == patch.Unknown {
		return machine.Proven{}, false
	}
	p.told = v.Effect
	return machine.Proven{
		Patch: p.name, Effect: string(v.Effect), Reason: v.Reason,
		Enforce: v.Effect == patch.Ineffective || v.Effect == patch.Partial,
	}, true
}

// expectedRanks are the ranks that have spoken, once all are known to have.
func (p *proof) expectedRanks() []string {
	if p.expected > 0 && len(p.ranks) < p.expected {
		return nil
	}
	return p.ranks
}

func add(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
