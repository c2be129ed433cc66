// Command patch-releases tries the founding patch on real SGLang releases: each
// wheel is fetched with pip, unpacked into an environment of its own, planned,
// patched and reverted. It prints a table and fails where a release does not
// reach the state that its family has, or is not back byte for byte.
//
//	go run ./.ci/patch-releases              one release of each family, and the newest
//	go run ./.ci/patch-releases -all         every release from 0.5.0 on
//	go run ./.ci/patch-releases -wheels DIR  use and keep wheels there
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	pep440 "github.com/aquasecurity/go-pep440-version"

	"sglaunch/patch"
)

const patchName = "flashinfer-cutlass-autotune"

// families holds one release of each layout that SGLang has had.
var families = []string{"0.5.3", "0.5.6", "0.5.7", "0.5.8", "0.5.9", "0.5.10", "0.5.12", "0.5.13", "0.5.14", "0.5.17"}

// want is the state that a release must reach.
func want(version string) patch.State {
	v, err := pep440.Parse(version)
	if err != nil {
		return ""
	}
	switch {
	case v.LessThan(pep440.MustParse("0.5.7")):
		return patch.Unsupported
	case v.LessThan(pep440.MustParse("0.5.13")):
		return patch.Pristine
	}
	return patch.Obsolete
}

func main() {
	all := flag.Bool("all", false, "every release from 0.5.0 on")
	wheels := flag.String("wheels", "", "folder of wheels, kept; default a temporary one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *all, *wheels); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, all bool, wheels string) error {
	if wheels == "" {
		dir, err := os.MkdirTemp("", "patch-releases-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		wheels = dir
	}
	versions, err := releases(ctx, all)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "release\tstate\treverted\tfile")
	var failed []string
	for _, version := range versions {
		r := try(ctx, version, wheels)
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", version, r.state, r.reverted, r.file)
		if r.err != nil {
			failed = append(failed, fmt.Sprintf("%s: %v", version, r.err))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(failed) > 0 {
		return errors.New(strings.Join(failed, "\n"))
	}
	return nil
}

var versionForm = regexp.MustCompile(`\b0\.[5-9]\.\d+(?:\.post\d+|rc\d+)?\b|\b[1-9]\d*\.\d+\.\d+(?:\.post\d+|rc\d+)?\b`)

// releases lists the versions to try, oldest first.
func releases(ctx context.Context, all bool) ([]string, error) {
	out, err := exec.CommandContext(ctx, "python3", "-m", "pip", "index", "versions", "sglang").Output()
	if err != nil {
		return nil, fmt.Errorf("cannot list the releases of sglang: %w", err)
	}
	_, list, _ := strings.Cut(string(out), "Available versions:")
	line, _, _ := strings.Cut(list, "\n")
	published := versionForm.FindAllString(line, -1)
	if len(published) == 0 {
		return nil, errors.New("cannot list the releases of sglang: pip names none")
	}
	slices.Reverse(published)
	if all {
		return published, nil
	}
	newest := published[len(published)-1]
	return append(slices.Clone(families), newest), nil
}

// result is one line of the table.
type result struct {
	state    patch.State
	reverted string
	file     string
	err      error
}

func try(ctx context.Context, version, wheels string) (r result) {
	wheel, err := fetch(ctx, version, wheels)
	if err != nil {
		return result{err: err}
	}
	root, err := os.MkdirTemp("", "patch-release-")
	if err != nil {
		return result{err: err}
	}
	defer os.RemoveAll(root)
	in, site, err := install(ctx, wheel, filepath.Join(root, "venv"))
	if err != nil {
		return result{err: err}
	}
	return applyAndRevert(ctx, in, site, filepath.Join(root, "state"), version)
}

func applyAndRevert(ctx context.Context, in patch.Interpreter, site, state, version string) (r result) {
	before, err := listing(site)
	if err != nil {
		return result{err: err}
	}
	ledger, err := patch.OpenLedger(state)
	if err != nil {
		return result{err: err}
	}
	plan, err := patch.MakePlan(ctx, ledger, in, []patch.Patch{{Use: patchName}})
	if err != nil {
		return result{err: err}
	}
	target := plan.Targets[0]
	r = result{state: target.State, file: strings.TrimPrefix(target.Path, site+"/"), reverted: "-"}
	if r.state != want(version) {
		r.err = fmt.Errorf("the state is %s (%s), want %s", r.state, target.Reason, want(version))
		return r
	}
	if r.state != patch.Pristine {
		return r
	}
	r.reverted, r.err = roundTrip(ctx, ledger, plan, site, before)
	return r
}

// roundTrip applies, looks that just the one line changed, and reverts.
func roundTrip(ctx context.Context, ledger *patch.Ledger, plan *patch.Plan, site string, before map[string]string) (string, error) {
	owner := patch.Owner{PID: os.Getpid(), Launch: "patch-releases"}
	applied, err := ledger.Apply(ctx, plan, owner)
	if err != nil {
		return "no", err
	}
	patched, err := listing(site)
	if err != nil {
		return "no", err
	}
	if changed := differences(before, patched); len(changed) != 1 || len(applied.Files) != 1 {
		return "no", fmt.Errorf("the patch changed %q", changed)
	}
	if _, err := ledger.Revert(ctx, owner.Launch); err != nil {
		return "no", err
	}
	after, err := listing(site)
	if err != nil {
		return "no", err
	}
	if changed := differences(before, after); len(changed) > 0 {
		return "no", fmt.Errorf("%q are not what they were", changed)
	}
	return "identical", nil
}
