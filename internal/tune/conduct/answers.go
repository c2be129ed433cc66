package conduct

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"sglaunch/internal/mask"
	"sglaunch/internal/plain"
	"sglaunch/internal/probe"
	"sglaunch/internal/probe/answers"
	"sglaunch/internal/statedir"
	"sglaunch/internal/tune"
	"sglaunch/internal/visible"
)

// batch is how many prompts are asked at a time: always as many, so that no launch
// answers otherwise for that.
const batch = 8

// ask has the server answer the fixed prompts, and the study's own command look
// at it where that is wanted. An end of the server ends both.
func (at *attempt) ask(ctx context.Context, a tune.Ask) (tune.Answered, *tune.Ended) {
	serving, cancel := at.server.Serving(ctx)
	defer cancel()
	limited, cancel := context.WithDeadline(serving, a.Until)
	defer cancel()
	r := tune.Answered{Launch: at.n}
	began := time.Now()
	if q := at.study.Quality; q.Answers > 0 {
		heard := probe.New(at.at.options).Ask(limited, probe.Check{Generations: q.Answers, Tokens: q.Tokens, BatchSizes: []int{batch}, Limit: q.Limit}, func(int) {})
		at.heard(&r, heard)
	}
	if a.Eval && limited.Err() == nil {
		r.Eval = at.evaluate(limited)
	}
	if ended := at.cut(ctx, serving); ended != nil {
		return tune.Answered{}, ended
	}
	r.Took = time.Since(began)
	return r, nil
}

// heard takes the answers in, and keeps them for a person. Those that did not all
// come are no sample: it has to be the same prompts in all launches.
func (at *attempt) heard(r *tune.Answered, heard probe.Heard) {
	if r.Undone = heard.Undone; r.Undone != "" {
		return
	}
	s := answers.Keep(heard.Answers, heard.Tokens)
	r.Sample = &s
	path := filepath.Join(at.launchFolder(at.n), "answers.jsonl")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, statedir.FileMode)
	if err == nil {
		err = answers.Write(f, heard.Answers)
		_ = f.Close()
	}
	if err != nil {
		at.tell("the answers are not kept: " + plain.Error(err).Error())
		return
	}
	r.File = at.relative(path)
}

// evaluate runs the study's own command. It is bounded as a bench client is, and
// leaves as little behind.
func (at *attempt) evaluate(ctx context.Context) *tune.Evaluated {
	name := at.freeName("eval")
	r := at.runOf(ctx, tune.Load{}, tune.Point{}, name+".json")
	limit := at.study.Quality.EvalLimit
	end := Client{
		What: "eval", Argv: r.Fill(at.study.Quality.Eval), Env: at.clientEnv(), Dir: at.folder, Log: name + ".log",
		Marker: fmt.Sprintf("SGLAUNCH_TUNE_CLIENT=%s/%d", at.dir, time.Now().UnixNano()), Limit: limit, Quiet: limit,
	}.Run(ctx)
	if end.Status < 0 {
		return &tune.Evaluated{Status: -1, Line: end.Problem}
	}
	printed, _ := tailOf(name+".log", 2<<10)
	line := visible.Clip(mask.String(lastLine(string(printed))), textMost)
	return &tune.Evaluated{Status: end.Status, Line: line, Number: numberAtEnd(line)}
}

var lastNumber = regexp.MustCompile(`(-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?) ?%?$`)

// numberAtEnd is the number that a line ends with; nil: it ends with none.
func numberAtEnd(line string) *float64 {
	m := lastNumber.FindStringSubmatch(strings.TrimSpace(line))
	if m == nil {
		return nil
	}
	x, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return nil
	}
	return &x
}
