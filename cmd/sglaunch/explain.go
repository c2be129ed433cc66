package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"sglaunch/internal/config"
	"sglaunch/internal/mask"
	"sglaunch/internal/visible"
	"sglaunch/phases"
)

// explainOptions are the flags of `sglaunch explain`.
type explainOptions struct {
	json    bool
	against string
	rules   string
}

func newExplainCommand() *cobra.Command {
	var o explainOptions
	c := &cobra.Command{
		Use:   "explain LOG... | -",
		Short: "Tell what a saved server output means",
		Long: `Tell what a saved server output means: the phases and how long each took, the
ranks and who is behind, and, where it failed, the root cause with its line,
whether an unchanged relaunch helps and what to change.

LOG is a file, plain or gzip, or - for standard input; the folder of a launch
stands for the output of its newest attempt. Several are the nodes of one launch.
Prefixes of kubectl, Compose, Ray, journald and Slurm,
colours and redrawn bars are understood:

  kubectl logs pod | sglaunch explain -

The exit code is 0 whenever the output could be read.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, logs []string) error {
			if twice(slices.Concat(logs, []string{o.against}), "-") {
				return &exitError{exitUsage, errors.New("cannot read standard input twice"), "give - once, and files for the rest"}
			}
			rules, err := loadRuleFile(o.rules)
			if err != nil {
				return err
			}
			if o.against != "" {
				return explainAgainst(c.OutOrStdout(), logs, rules, o)
			}
			return explain(c.OutOrStdout(), logs, rules, o)
		},
	}
	c.Flags().BoolVar(&o.json, "json", false, "print one JSON object")
	c.Flags().StringVar(&o.against, "against", "", "the output of a launch that went well: print what it never said")
	c.Flags().StringVar(&o.rules, "rules", "", "a file of rules that stand before the built-in ones")
	return c
}

// twice tells whether a list has a word more than once.
func twice(list []string, word string) bool {
	first := slices.Index(list, word)
	return first >= 0 && slices.Contains(list[first+1:], word)
}

// nodeReport is the answer for one of several files.
type nodeReport struct {
	File string
	phases.Report
}

// MarshalJSON puts the name of the file before the answer.
func (n nodeReport) MarshalJSON() ([]byte, error) {
	file, err := json.Marshal(struct {
		File string `json:"file"`
	}{n.File})
	if err != nil {
		return nil, err
	}
	answer, err := n.Report.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return append(append(file[:len(file)-1], ','), answer[1:]...), nil
}

func explain(w io.Writer, logs []string, rules *phases.RuleSet, o explainOptions) error {
	nodes := make([]nodeReport, len(logs))
	for i, path := range logs {
		report, err := readLog(path, rules)
		if err != nil {
			return err
		}
		nodes[i] = nodeReport{path, report}
	}
	switch {
	case o.json && len(nodes) == 1:
		return writeJSON(w, nodes[0].Report)
	case o.json:
		return writeJSON(w, struct {
			Nodes []nodeReport `json:"nodes"`
			First *string      `json:"first_failure"` // the file whose failure explains the others
		}{nodes, firstFailure(nodes)})
	}
	return writeNodes(w, nodes)
}

func writeNodes(w io.Writer, nodes []nodeReport) error {
	if len(nodes) == 1 {
		return writeNode(w, nodes[0].Report)
	}
	if first := firstFailure(nodes); first != nil {
		fmt.Fprintf(w, "the failure of %s explains the others\n\n", visible.Line(*first))
	}
	for i, n := range nodes {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "== %s\n", visible.Line(n.File))
		if err := writeNode(w, n.Report); err != nil {
			return err
		}
	}
	return nil
}

// writeNode shows the answer for one file. Where no line was recognised there
// is no answer, and a phase would be a false one.
func writeNode(w io.Writer, r phases.Report) error {
	if r.Recognised() {
		return phases.WriteTimeline(w, r)
	}
	_, err := fmt.Fprintf(w, "no line of an SGLang server recognised in %d lines\n", r.Lines)
	if err == nil && r.Cut != "" {
		_, err = fmt.Fprintf(w, "  %s\n", r.Cut)
	}
	return err
}

// firstFailure names the file with the failure that explains the others: the
// earliest that states a cause of its own.
func firstFailure(nodes []nodeReport) *string {
	reports := make([]phases.Report, len(nodes))
	for i, n := range nodes {
		reports[i] = n.Report
	}
	i := phases.FirstFailure(reports)
	if i < 0 {
		return nil
	}
	return &nodes[i].File
}

func readLog(path string, rules *phases.RuleSet) (phases.Report, error) {
	r, err := openLog(path)
	if err != nil {
		return phases.Report{}, err
	}
	report, err := phases.Read(r, rules)
	return report.MapText(mask.String), errors.Join(err, r.Close())
}

func explainAgainst(w io.Writer, logs []string, rules *phases.RuleSet, o explainOptions) error {
	if len(logs) != 1 {
		return &exitError{exitUsage, errors.New("cannot compare: --against takes one LOG"), "sglaunch explain --against GOOD LOG"}
	}
	good, err := openLog(o.against)
	if err != nil {
		return err
	}
	defer good.Close()
	bad, err := openLog(logs[0])
	if err != nil {
		return err
	}
	defer bad.Close()
	diff, err := phases.Compare(bad, good, rules)
	if err != nil {
		return err
	}
	if o.json {
		return writeJSON(w, diff)
	}
	return phases.WriteDifference(w, diff)
}

// loadRuleFile puts a user's own rules before the built-in ones.
func loadRuleFile(path string) (*phases.RuleSet, error) {
	if path == "" {
		return phases.BuiltinRules(), nil
	}
	own, err := config.ReadRules(path)
	if err != nil {
		return nil, err
	}
	return phases.BuiltinRules().With(own), nil
}
