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

// CSV writes one row for each run of a bench client and each point that was left
// out, and one for each launch that had none. The columns of metrics are those that some run gave.
func CSV(w io.Writer, s tune.Summary) error {
	names := metrics(s)
	out := csv.NewWriter(w)
	head := []string{"launch", "stage", "round", "trial", "name", "began", "ready_seconds", "state", "ratio", "load", "concurrency",
		"requested", "completed", "failed", "throttled", "power_cap", "pressure", "client", "lag", "clock_mhz", "celsius", "watts", "limit_watts", "pstate",
		"joules", "generated", "joules_per_1000_tokens", "invalid", "file"}
	if err := out.Write(harmless(append(head, names...))); err != nil {
		return err
	}
	for _, l := range s.Launches {
		runs := rows(l)
		if len(runs) == 0 {
			runs = []tune.Measured{{}}
		}
		for _, m := range runs {
			if err := out.Write(harmless(csvRow(s, l, m, names))); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

func csvRow(s tune.Summary, l tune.LaunchSummary, m tune.Measured, names []string) []string {
	row := []string{
		strconv.Itoa(l.N), string(l.Slot.Stage), strconv.Itoa(l.Slot.Round), l.Trial.ID, l.Trial.Name, l.Began.Format(time.RFC3339),
	}
	if l.Ready != nil {
		row = append(row, number(l.Ready.Took.Seconds()))
	} else {
		row = append(row, "")
	}
	row = append(row, state(l), number(l.Ratio), m.Point.Load, whole(m.Point.Concurrency),
		whole(m.Result.Requested), whole(m.Result.Completed), whole(m.Result.Failed),
		number(m.Window.Throttled), number(m.Window.PowerCap), number(m.Window.Pressure), number(m.Window.Client), number(m.Window.Lag), number(m.Window.ClockMHz), number(m.Window.Celsius), number(m.Window.Watts), number(m.Window.LimitWatts), m.Window.PState,
		number(m.Window.Joules), whole(m.Result.Generated), number(m.PerThousand()))
	why := ""
	switch {
	case m.Point.Soak:
		why = spoilt(s, l, m)
	case len(rows(l)) > 0:
		why = strings.Join(append(s.Study.Invalid(m), s.Study.Broken(m)), "; ")
	}
	row = append(row, strings.Trim(why, "; "), m.File)
	for _, metric := range names {
		if x, ok := m.Result.Metrics[metric]; ok {
			row = append(row, strconv.FormatFloat(x, 'g', -1, 64))
		} else {
			row = append(row, "")
		}
	}
	return row
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
