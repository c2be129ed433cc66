package report

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"time"

	"sglaunch/internal/tune"
	"sglaunch/internal/visible"
)

// csvRun is what a row is about: a run of a bench client, of a launch, of a night.
type csvRun struct {
	night  tune.Summary
	launch tune.LaunchSummary
	tune.Measured
}

// csvColumns are those that every table has, each with what stands in it. Scripts
// know them by their names.
var csvColumns = []struct {
	name string
	cell func(csvRun) string
}{
	{"launch", func(r csvRun) string { return strconv.Itoa(r.launch.N) }},
	{"stage", func(r csvRun) string { return string(r.launch.Slot.Stage) }},
	{"round", func(r csvRun) string { return strconv.Itoa(r.launch.Slot.Round) }},
	{"trial", func(r csvRun) string { return r.launch.Trial.ID }},
	{"name", func(r csvRun) string { return r.launch.Trial.Name }},
	{"began", func(r csvRun) string { return r.launch.Began.Format(time.RFC3339) }},
	{"ready_seconds", csvRun.readySeconds},
	{"state", func(r csvRun) string { return state(r.launch) }},
	{"ratio", func(r csvRun) string { return number(r.launch.Ratio) }},
	{"load", func(r csvRun) string { return r.Point.Load }},
	{"concurrency", func(r csvRun) string { return whole(r.Point.Concurrency) }},
	{"requested", func(r csvRun) string { return whole(r.Result.Requested) }},
	{"completed", func(r csvRun) string { return whole(r.Result.Completed) }},
	{"failed", func(r csvRun) string { return whole(r.Result.Failed) }},
	{"throttled", func(r csvRun) string { return number(r.Window.Throttled) }},
	{"power_cap", func(r csvRun) string { return number(r.Window.PowerCap) }},
	{"pressure", func(r csvRun) string { return number(r.Window.Pressure) }},
	{"client", func(r csvRun) string { return number(r.Window.Client) }},
	{"lag", func(r csvRun) string { return number(r.Window.Lag) }},
	{"clock_mhz", func(r csvRun) string { return number(r.Window.ClockMHz) }},
	{"celsius", func(r csvRun) string { return number(r.Window.Celsius) }},
	{"watts", func(r csvRun) string { return number(r.Window.Watts) }},
	{"limit_watts", func(r csvRun) string { return number(r.Window.LimitWatts) }},
	{"pstate", func(r csvRun) string { return r.Window.PState }},
	{"joules", func(r csvRun) string { return number(r.Window.Joules) }},
	{"generated", func(r csvRun) string { return whole(r.Result.Generated) }},
	{"joules_per_1000_tokens", func(r csvRun) string { return number(r.PerThousand()) }},
	{"invalid", csvRun.invalid},
	{"file", func(r csvRun) string { return r.File }},
}

// CSV writes one row for each run of a bench client and each point that was left
// out, and one for each launch that had none. Behind the columns that every table
// has stand those of the metrics that some run gave.
func CSV(w io.Writer, s tune.Summary) error {
	names := metrics(s)
	var head []string
	for _, column := range csvColumns {
		head = append(head, column.name)
	}
	out := csv.NewWriter(w)
	if err := out.Write(harmless(append(head, names...))); err != nil {
		return err
	}
	for _, l := range s.Launches {
		runs := rows(l)
		if len(runs) == 0 {
			runs = []tune.Measured{{}}
		}
		for _, m := range runs {
			if err := out.Write(harmless(csvRun{s, l, m}.row(names))); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

func (r csvRun) row(metrics []string) (row []string) {
	for _, column := range csvColumns {
		row = append(row, column.cell(r))
	}
	for _, metric := range metrics {
		cell := ""
		if x, ok := r.Result.Metrics[metric]; ok {
			cell = strconv.FormatFloat(x, 'g', -1, 64)
		}
		row = append(row, cell)
	}
	return row
}

func (r csvRun) readySeconds() string {
	if r.launch.Ready == nil {
		return ""
	}
	return number(r.launch.Ready.Took.Seconds())
}

// invalid is why a run does not count.
func (r csvRun) invalid() (why string) {
	switch study := r.night.Study; {
	case r.Point.Soak:
		why = spoilt(r.night, r.launch, r.Measured)
	case len(rows(r.launch)) > 0:
		why = strings.Join(append(study.Invalid(r.Measured), study.Broken(r.Measured)), "; ")
	}
	return strings.Trim(why, "; ")
}

// number leaves a cell empty where nothing is known.
func number(x float64) string {
	if x == 0 {
		return ""
	}
	return strconv.FormatFloat(x, 'g', 6, 64)
}

func whole(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// harmless keeps a terminal from obeying what is in a row, and a spreadsheet from
// taking words of a log for a formula.
func harmless(row []string) []string {
	for i, cell := range row {
		cell = visible.Line(cell)
		_, err := strconv.ParseFloat(cell, 64)
		if word := strings.TrimLeft(cell, " "); err != nil && word != "" && strings.ContainsRune("=+-@＝＋－＠", []rune(word)[0]) {
			cell = "'" + cell
		}
		row[i] = cell
	}
	return row
}
