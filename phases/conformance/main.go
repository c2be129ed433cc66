// Command conformance proves the rules against real releases of SGLang: it
// looks for the literal of every rule in the source of each release that the
// rule claims, and prints a table of rule by release.
//
//	conformance FOLDER        FOLDER holds sglang-VERSION-*.whl files
//
// A rule that names somebody else as the printer (from = "torch") is only
// listed. The exit status is 1 where a claimed release does not print a line,
// or where no release at all does.
package main

import (
	"archive/zip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"text/tabwriter"

	"github.com/aquasecurity/go-pep440-version"

	"sglaunch/phases"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: conformance FOLDER")
		os.Exit(64)
	}
	if err := run(os.Args[1], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "conformance: %v\n", err)
		os.Exit(1)
	}
}

// A release is the text that one wheel can print.
type release struct {
	version version.Version
	name    string
	source  string
}

func run(folder string, w io.Writer) error {
	releases, err := readReleases(folder)
	if err != nil {
		return err
	}
	if len(releases) == 0 {
		return fmt.Errorf("cannot find a wheel of sglang in %q", folder)
	}
	wrong := 0
	table := tabwriter.NewWriter(w, 0, 8, 1, ' ', 0)
	header := "rule\tclaims"
	for _, r := range releases {
		header += "\t" + r.name
	}
	fmt.Fprintln(table, header+"\t")
	for _, rule := range phases.BuiltinRules().Rules() {
		row, bad := check(rule, releases)
		wrong += bad
		fmt.Fprintln(table, row)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w, "\n+ printed and claimed   . not printed, not claimed   ! claimed but not printed   (+) printed, not claimed")
	if wrong > 0 {
		return fmt.Errorf("cannot confirm %d claims", wrong)
	}
	return nil
}

// check is one row of the table and the number of false claims in it.
func check(rule *phases.Rule, releases []release) (row string, wrong int) {
	if rule.From != "" {
		return fmt.Sprintf("%s\tfrom %s\t", rule.ID, rule.From), 0
	}
	row = fmt.Sprintf("%s\t%s", rule.ID, rule.Versions())
	needle := rule.Lit
	if rule.Source != "" {
		needle = rule.Source
	}
	found := false
	for _, r := range releases {
		claimed, printed := claims(rule, r.version), strings.Contains(r.source, squeeze(needle))
		found = found || printed
		switch {
		case claimed && printed:
			row += "\t+"
		case printed:
			row += "\t(+)"
		case claimed:
			row += "\t!"
			wrong++
		default:
			row += "\t."
		}
	}
	if !found {
		return row + "\t<- in no release", wrong + 1
	}
	return row + "\t", wrong
}

func claims(rule *phases.Rule, v version.Version) bool {
	if since, err := version.Parse(rule.Since); err == nil && v.LessThan(since) {
		return false
	}
	// Post releases of the last one belong to it.
	if until, err := version.Parse(rule.Until); err == nil && v.GreaterThan(until) && v.BaseVersion() != until.BaseVersion() {
		return false
	}
	return true
}

var wheelName = regexp.MustCompile(`^sglang-([^-]+)-`)

func readReleases(folder string) ([]release, error) {
	wheels, err := filepath.Glob(filepath.Join(folder, "sglang-*.whl"))
	if err != nil {
		return nil, err
	}
	var all []release
	for _, path := range wheels {
		name := wheelName.FindStringSubmatch(filepath.Base(path))
		if name == nil {
			continue
		}
		v, err := version.Parse(name[1])
		if err != nil {
			return nil, fmt.Errorf("cannot read the version of %q: %w", path, err)
		}
		source, err := readWheel(path)
		if err != nil {
			return nil, err
		}
		all = append(all, release{v, name[1], source})
	}
	sort.Slice(all, func(i, j int) bool { return all[i].version.LessThan(all[j].version) })
	return all, nil
}

// readWheel joins the Python sources of a wheel.
func readWheel(path string) (string, error) {
	wheel, err := zip.OpenReader(path)
	if err != nil {
		return "", fmt.Errorf("cannot open %q: %w", path, err)
	}
	defer wheel.Close()
	var all strings.Builder
	for _, f := range wheel.File {
		if !strings.HasSuffix(f.Name, ".py") || strings.Contains(f.Name, "/test/") {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return "", err
		}
		text, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			return "", fmt.Errorf("cannot read %q in %q: %w", f.Name, path, err)
		}
		all.WriteString(squeeze(join.ReplaceAllString(string(text), "")))
	}
	return all.String(), nil
}

// join finds the seam of two adjacent string literals, which Python joins.
var join = regexp.MustCompile(`["']\s*\n\s*[fr]{0,2}["']`)

// squeeze makes quotes and blanks alike, which sources write in several ways.
func squeeze(s string) string {
	return strings.Join(strings.Fields(strings.NewReplacer(`\"`, `"`, `\'`, `'`).Replace(s)), " ")
}
