package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sglaunch/internal/proc"
	"sglaunch/internal/shim/wire"
	"sglaunch/patch"
	"sglaunch/supervisor/machine"
)

// applyPatches puts the launch's patches on disk, all of them or, where one
// says run-unpatched, those that fit. It says of every start which files keep a
// patch, this launch's or an earlier one's.
func (h *hands) applyPatches(ctx context.Context, without []string) machine.Body {
	defer h.noteKept(func(string) bool { return true })
	wanted, marked := h.wanted(ctx, without)
	if len(wanted) == 0 {
		h.watch.patched(nil, nil)
		return machine.Patched{Skipped: marked}
	}
	interpreter, err := h.interpreter(ctx)
	if err != nil {
		return machine.PatchRefused{Reason: fmt.Sprintf("cannot patch: %v", err)}
	}
	plan, skipped, err := h.fittingPlan(ctx, interpreter, wanted)
	if err != nil {
		return machine.PatchRefused{Reason: err.Error()}
	}
	return h.apply(ctx, plan, wanted, append(marked, skipped...))
}

// wanted are the patches of the launch without those that the machine leaves
// out and those that are known to give wrong answers on this machine.
func (h *hands) wanted(ctx context.Context, without []string) (wanted []patch.Patch, marked []string) {
	for _, p := range h.Patches {
		if !slices.Contains(without, p.Label()) {
			wanted = append(wanted, p)
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	kit := h.lookAtKit(ctx)
	for _, m := range h.launch.memory.wrong(ctx) {
		for _, p := range wanted {
			if p.Label() == m.Patch && kit.has(m, p) {
				marked = append(marked, TellWrong(m))
			}
		}
		wanted = slices.DeleteFunc(wanted, func(p patch.Patch) bool { return p.Label() == m.Patch && kit.has(m, p) })
	}
	return wanted, marked
}

// fittingPlan plans the patches; those that cannot be used are left out where
// their policy allows it.
func (h *hands) fittingPlan(ctx context.Context, in patch.Interpreter, wanted []patch.Patch) (*patch.Plan, []string, error) {
	var skipped []string
	for {
		plan, err := patch.MakePlan(ctx, h.launch.ledger, in, wanted)
		if err != nil {
			return nil, nil, err
		}
		refused := plan.Refused()
		if len(refused) == 0 {
			return plan, skipped, nil
		}
		for _, t := range refused {
			if policyOf(wanted, t.Patch).OnRefused != patch.RefusedUnpatched {
				return nil, nil, fmt.Errorf("patch %s is %s: %s", t.Patch, verdictOn(t), t.Reason)
			}
			skipped = append(skipped, fmt.Sprintf("%s is %s: %s", t.Patch, verdictOn(t), t.Reason))
			wanted = slices.DeleteFunc(slices.Clone(wanted), func(p patch.Patch) bool { return p.Label() == t.Patch })
		}
		if len(wanted) == 0 {
			return &patch.Plan{Interpreter: in}, skipped, nil
		}
	}
}

// verdictOn says in a word why a target is refused: its state, unless that is a
// good one and something else stands in the way.
func verdictOn(t patch.Target) string {
	switch t.State {
	case patch.Drifted, patch.Missing, patch.Unsupported:
		return string(t.State)
	}
	return "refused"
}

func (h *hands) apply(ctx context.Context, plan *patch.Plan, wanted []patch.Patch, skipped []string) machine.Body {
	h.order(wire.Message{Type: wire.Lease, Text: h.launch.ID})
	applied, err := h.launch.ledger.Apply(ctx, plan, h.owner())
	switch {
	case errors.Is(err, patch.ErrLeased):
		return machine.PatchRefused{Reason: fmt.Sprintf("another launch has the files patched otherwise: %v", err)}
	case err != nil:
		return machine.PatchRefused{Reason: err.Error()}
	}
	var active []machine.ActivePatch
	facts := map[string]patch.Facts{}
	for _, t := range plan.Targets {
		p := policyOf(wanted, t.Patch)
		inPlace := t.State == patch.WasApplied || slices.Contains(applied.Files, t.Path) || len(applied.Env) > 0
		facts[t.Patch] = patch.Facts{Patch: p, InPlace: inPlace || t.State == patch.Obsolete, Argv: h.command.Args}
		if !inPlace {
			h.note("patch", fmt.Sprintf("patch %s is not needed: %s", t.Patch, t.Reason))
			continue
		}
		if why := p.Unmet(h.command.Args); why != "" {
			h.note("patch", fmt.Sprintf("patch %s is not expected to have an effect: %s", t.Patch, why))
		}
		active = addFile(active, p, t)
	}
	h.watch.patched(facts, applied.Env)
	return machine.Patched{Active: active, Skipped: skipped}
}

// factsOf is what a new supervisor knows of the patches that an earlier one
// applied.
func (h *hands) factsOf(active []machine.ActivePatch) map[string]patch.Facts {
	facts := map[string]patch.Facts{}
	for _, a := range active {
		facts[a.Name] = patch.Facts{Patch: policyOf(h.Patches, a.Name), InPlace: true, Argv: h.command.Args}
	}
	return facts
}

// addFile collects the files of each patch.
func addFile(active []machine.ActivePatch, p patch.Patch, t patch.Target) []machine.ActivePatch {
	for i := range active {
		if active[i].Name == t.Patch {
			active[i].Files = append(active[i].Files, t.Path)
			return active
		}
	}
	return append(active, machine.ActivePatch{Name: t.Patch, Files: []string{t.Path}, Proof: p.Proof.Phase, OnUnproven: p.OnUnproven})
}

// policyOf is a patch of that name with the content and the policies of a
// shipped one filled in.
func policyOf(patches []patch.Patch, name string) patch.Patch {
	for _, p := range patches {
		if p.Label() == name {
			if resolved, err := p.Resolved(); err == nil {
				return resolved
			}
			return p
		}
	}
	return patch.Patch{}
}

func (h *hands) owner() patch.Owner {
	return patch.Owner{
		PID: h.launch.record.Shim.PID, StartTime: h.launch.record.Shim.Start,
		BootID: proc.BootID(), Launch: h.launch.ID,
	}
}

// interpreter is the Python that will run the server.
func (s Setup) interpreter(ctx context.Context) (patch.Interpreter, error) {
	if s.Python != "" {
		return patch.FindInterpreter(ctx, []string{s.Python}, s.Dir, s.Env)
	}
	return patch.FindInterpreter(ctx, s.Argv, s.Dir, s.Env)
}

// revertPatches restores every file that the launch has changed.
// The autotune caches of an attempt with wrong answers are put aside with it.
func (h *hands) revertPatches(ctx context.Context, attempt int, setAside bool) machine.Body {
	if setAside {
		h.setTuningAside(attempt)
	}
	reverted, err := h.takeBack(ctx)
	if err != nil {
		return machine.RevertFailed{Reason: notReverted(reverted, err)}
	}
	h.order(wire.Message{Type: wire.Lease})
	if len(reverted.Restored) > 0 {
		h.note("patch", fmt.Sprintf("restored %s", strings.Join(reverted.Restored, ", ")))
	}
	if len(reverted.Kept) > 0 {
		h.noteKept(func(path string) bool { return slices.Contains(reverted.Kept, path) })
	}
	return machine.Reverted{Kept: reverted.Kept}
}

// takeBack is the ledger's Revert. A launch without patches needs no ledger: it
// lies on a disk that may hang, or is gone.
func (h *hands) takeBack(ctx context.Context) (*patch.Reverted, error) {
	if len(h.Patches) == 0 {
		return &patch.Reverted{}, nil
	}
	if h.launch.bereft {
		return &patch.Reverted{}, fmt.Errorf("what was patched is not known any more: the records in %s are gone", h.State.Patches())
	}
	return h.launch.ledger.Revert(ctx, h.launch.ID)
}

// notReverted tells why files are not as they were, and for those that somebody
// changed what brings them back.
func notReverted(r *patch.Reverted, err error) string {
	if !errors.Is(err, patch.ErrDrifted) {
		return err.Error()
	}
	return fmt.Sprintf("%v; `sglaunch patch revert --force %s` brings it back", err, strings.Join(r.Drifted, " "))
}

// noteKept says of files that keep a patch, by the user's wish, how it ends.
func (h *hands) noteKept(which func(path string) bool) {
	held, err := h.launch.ledger.Status()
	if err != nil {
		return // whoever needs the ledger next says so
	}
	for _, text := range keptLines(held, which) {
		h.note("patch", text)
	}
}

func keptLines(held []patch.Held, which func(path string) bool) []string {
	var lines []string
	for _, f := range held {
		if f.Kept && f.State == patch.WasApplied && which(f.Path) {
			lines = append(lines, fmt.Sprintf("patch %s stays in %s until `sglaunch patch revert`", strings.Join(f.Patches, ", "), f.Path))
		}
	}
	return lines
}
