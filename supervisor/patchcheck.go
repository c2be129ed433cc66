package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"sglaunch/internal/container"
	"sglaunch/internal/history"
	"sglaunch/internal/preflight"
	"sglaunch/patch"
	"sglaunch/supervisor/machine"
)

// patchCheck is the name of the checks of patches.
const patchCheck = "patch"

// checkPatches says of each file of each patch what the launch would do with it.
// As in a launch, the other checks come first: which patches are left out depends
// on the GPUs.
func (h *hands) checkPatches(ctx context.Context) []preflight.Check {
	if _, inside := container.Find(h.Argv); inside || len(h.Patches) == 0 {
		return nil // the check of a container has said that patches do not reach it
	}
	ctx, cancel := context.WithTimeout(ctx, machine.PatchLimit)
	defer cancel()
	ledger, err := patch.OpenLedger(h.State.Patches())
	if err != nil {
		return []preflight.Check{cannotPatch(err, "")}
	}
	memory, forget := recallOnly(ctx, h.State.History())
	defer forget()
	h.launch = &launch{ledger: ledger, memory: memory}
	wanted, marked := h.wanted(ctx, nil)
	var checks []preflight.Check
	for _, text := range marked {
		checks = append(checks, preflight.Check{Name: patchCheck, Status: preflight.Warn, Found: "left out: " + text})
	}
	if len(wanted) == 0 {
		return checks
	}
	interpreter, err := h.interpreter(ctx)
	if err != nil {
		return append(checks, cannotPatch(err, h.pythonAdvice(err)))
	}
	plan, err := patch.MakePlan(ctx, ledger, interpreter, wanted)
	if err != nil {
		return append(checks, cannotPatch(err, ""))
	}
	return append(append(checks, checksOf(plan.Targets)...), unmet(wanted, plan.Targets, h.parsed().Args)...)
}

// recallOnly is a memory that only answers. Where there is none yet, none is made.
func recallOnly(ctx context.Context, path string) (m *memory, forget func()) {
	m = &memory{tell: func(string) {}}
	if _, err := os.Stat(path); err != nil {
		return m, func() {}
	}
	ctx, cancel := context.WithTimeout(ctx, memoryLimit)
	defer cancel()
	db, err := history.OpenToRead(ctx, path)
	if err != nil {
		return m, func() {} // a launch that cannot read it leaves no patch out either
	}
	m.db = db
	return m, func() { _ = db.Close() }
}

func cannotPatch(err error, advice string) preflight.Check {
	return preflight.Check{Name: patchCheck, Status: preflight.Fail, Found: fmt.Sprintf("cannot patch: %v", err), Advice: advice}
}

// pythonAdvice says what helps where no interpreter was found.
func (s Setup) pythonAdvice(err error) string {
	switch {
	case !errors.Is(err, patch.ErrNoPython):
		return ""
	case s.Python != "":
		return "server.python is to be the python of the server's environment, such as .venv/bin/python"
	}
	return "name it: server.python in launch.toml"
}

// checksOf tells what was planned for each file, refused or not.
func checksOf(targets []patch.Target) []preflight.Check {
	var checks []preflight.Check
	for _, t := range targets {
		c := preflight.Check{Name: patchCheck, Status: preflight.OK, Advice: t.Hint}
		word, then := string(t.State), ""
		if t.Refused {
			c.Status, word = preflight.Fail, verdictOn(t)
			if t.OnRefused == patch.RefusedUnpatched {
				c.Status, then = preflight.Warn, "; the launch runs without it"
			}
		}
		c.Found = fmt.Sprintf("%s is %s%s: %s%s", t.Patch, word, inFile(t.Path), t.Reason, then)
		checks = append(checks, c)
	}
	return checks
}

func inFile(path string) string {
	if path == "" {
		return ""
	}
	return " in " + path
}

// unmet warns of patches that will be in force and cannot have an effect with
// the server's flags.
func unmet(patches []patch.Patch, targets []patch.Target, args []string) []preflight.Check {
	var checks []preflight.Check
	for _, p := range patches {
		inForce := slices.ContainsFunc(targets, func(t patch.Target) bool {
			return t.Patch == p.Label() && !t.Refused && (t.State == patch.Pristine || t.State == patch.WasApplied)
		})
		if why := policyOf(patches, p.Label()).Unmet(args); inForce && why != "" {
			checks = append(checks, preflight.Check{Name: patchCheck, Status: preflight.Warn,
				Found: fmt.Sprintf("%s is not expected to have an effect: %s", p.Label(), why)})
		}
	}
	return checks
}
