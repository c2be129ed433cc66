package report

import (
	"fmt"

	"sglaunch/internal/tune"
)

// answerRow is what a trial's answers to the fixed prompts are like.
type answerRow struct{ Name, Same, Length, Variety, Eval, Remark string }

// answerRows are those of all trials that were asked.
func answerRows(s tune.Summary) (rows []answerRow) {
	for _, t := range s.Trials {
		q := t.Quality
		if q == nil || q.Answers == 0 && q.Eval == nil && q.Undone == "" {
			continue
		}
		r := answerRow{Name: t.Name, Length: percent(q.Length), Variety: percent(q.Variety), Remark: q.Undone}
		if q.Eval != nil {
			r.Eval = q.Eval.Line
		}
		switch {
		case q.Answers == 0:
		case t.Baseline():
			r.Length, r.Variety, r.Remark = "", "", q.Figures
			if q.Known {
				r.Same = fmt.Sprintf("%.0f %% among its launches", 100*q.Same)
			}
		default:
			if r.Same = fmt.Sprintf("%.0f %%", 100*q.Same); q.Unlike {
				r.Remark = "other answers than chance explains; alone no fault"
			}
		}
		rows = append(rows, r)
	}
	return rows
}
