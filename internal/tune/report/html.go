package report

import (
	_ "embed"
	"html/template"
	"io"
	"strconv"
	"strings"

	"sglaunch/internal/tune"
	"sglaunch/internal/visible"
)

//go:embed night.html
var nightHTML string

var page = template.Must(template.New("night").Funcs(template.FuncMap{
	"verdict": verdict, "serving": serving, "percent": percent, "listed": listed, "energy": energy, "fresh": fresh, "remark": remark,
	"left": left, "failures": failures, "figures": figures, "figure": figure, "command": command, "commands": commands,
	"clock": clock, "brief": brief, "clockOn": clockOn, "handOut": handOut, "measuredOn": measuredOn, "emptied": emptied, "caches": caches, "answers": answerRows, "state": state, "rows": rows, "spoilt": spoilt,
	"hundred": func(x float64) string { return figureText(100 * x) },
	"change":  func(x float64) string { return percent(1 + x) },
	"bottom":  func(height, up int) int { return height - up },
}).Parse(nightHTML))

// HTML writes one page with everything in it: no script, no network.
func HTML(w io.Writer, s tune.Summary) error {
	data := struct {
		tune.Summary
		Forest   *forest
		Timeline *timeline
		Pareto   *pareto
	}{Summary: s}
	if f, ok := drawForest(s); ok {
		data.Forest = &f
	}
	if t, ok := drawTimeline(s); ok {
		data.Timeline = &t
	}
	if p, ok := drawPareto(s); ok {
		data.Pareto = &p
	}
	var b strings.Builder
	if err := page.Execute(&b, data); err != nil {
		return err
	}
	_, err := io.WriteString(w, visible.Lines(b.String()))
	return err
}

func figureText(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }
