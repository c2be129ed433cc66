package conduct

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sglaunch/internal/tune"
)

// long tells that the full-size checks are wanted.
func long() bool { return os.Getenv("SGLAUNCH_LONG") != "" }

// night performs a whole night in a world of its own and returns it with its
// records.
func night(t *testing.T, study tune.Study, set func(*world)) (*world, []tune.Record) {
	t.Helper()
	w := &world{t: t, study: study}
	if set != nil {
		set(w)
	}
	end, records, err := w.run(&paper{world: w, left: -1}, tune.Facts{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if end.Serving == 0 || w.alive == nil {
		t.Errorf("nothing serves: %+v\n%s", end, strings.Join(w.lines, "\n"))
	}
	return w, records
}

func verdictOf(records []tune.Record) (v tune.Verdict) {
	for _, r := range records {
		if d, ok := r.Body.(tune.Decided); ok {
			v = d.Verdict
		}
	}
	return v
}

// launchesOf counts the launches of each trial, and their measurements.
func launchesOf(records []tune.Record) (launches, measured map[string]int) {
	launches, measured = map[string]int{}, map[string]int{}
	trial := map[int]string{}
	for _, r := range records {
		switch b := r.Body.(type) {
		case tune.Intended:
			launches[b.Slot.Trial]++
			trial[b.Launch] = b.Slot.Trial
		case tune.Measured:
			measured[trial[b.Launch]]++
		}
	}
	return launches, measured
}

func idOf(t *testing.T, records []tune.Record, name string) string {
	t.Helper()
	for _, r := range records {
		if p, ok := r.Body.(tune.Planned); ok {
			for _, trial := range p.Trials {
				if trial.Name == name {
					return trial.ID
				}
			}
		}
	}
	t.Fatalf("no trial %q", name)
	return ""
}

// The best of a known function is found, and serves where that is wanted.
func TestTheBestIsFound(t *testing.T) {
	for _, promote := range []string{tune.PromoteAsk, tune.PromoteServe} {
		synctest.Test(t, func(t *testing.T) {
			w, records := night(t, smallStudy(func(s *tune.Study) { s.Promote = promote }), nil)
			best := idOf(t, records, "--moe-runner-backend flashinfer_trtllm")
			want := map[string]string{tune.PromoteAsk: tune.BaselineID, tune.PromoteServe: best}[promote]
			if v := verdictOf(records); v.Winner != best || w.serves != want || w.launches > 12 {
				t.Errorf("promote = %s: %q won, %q serves, after %d launches", promote, v.Winner, w.serves, w.launches)
			}
		})
	}
}

// Killed between any two records, before or after the write, the night ends as
// if nothing had been: no trial lost, none counted twice, never two servers.
func TestKilledBetweenAnyTwoRecords(t *testing.T) {
	study := smallStudy(func(s *tune.Study) { s.Promote = tune.PromoteServe })
	var whole []tune.Record
	synctest.Test(t, func(t *testing.T) { _, whole = night(t, study, nil) })
	_, want := launchesOf(whole)
	for kill := range whole {
		for _, unsaved := range []bool{true, false} {
			if !long() && unsaved == (kill%2 == 0) {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				w := &world{t: t, study: study}
				p := &paper{world: w, left: kill, unsaved: unsaved}
				if _, _, err := w.run(p, tune.Facts{}, nil); !errors.Is(err, errKilled) {
					t.Fatalf("it was to be killed at record %d: %v", kill+1, err)
				}
				time.Sleep(time.Minute) // nobody looks
				w.sweep()
				p.left = -1
				end, records, err := w.run(p, tune.Facts{}, nil)
				if err != nil {
					t.Fatal(err)
				}
				checkResumed(t, kill, end, w, whole, records, want)
			})
		}
	}
}

func checkResumed(t *testing.T, kill int, end tune.End, w *world, whole, records []tune.Record, want map[string]int) {
	t.Helper()
	launches, measured := launchesOf(records)
	once, _ := launchesOf(whole)
	_, isDone := whole[kill].Body.(tune.Done)
	if !isDone && (end.Serving == 0 || w.serves == "") {
		t.Errorf("killed at record %d (%s): nothing serves", kill+1, whole[kill].Kind())
	}
	if v := verdictOf(records); v.Winner != verdictOf(whole).Winner {
		t.Errorf("killed at record %d (%s): %q won", kill+1, whole[kill].Kind(), v.Winner)
	}
	extra := 0
	for id, n := range launches {
		extra += n - once[id]
	}
	if extra < 0 || extra > 1 {
		t.Errorf("killed at record %d (%s): %d launches more", kill+1, whole[kill].Kind(), extra)
	}
	for id, n := range want {
		if got := measured[id]; got < n || got > n+2 { // what the interrupted launch had measured is measured again
			t.Errorf("killed at record %d (%s): %s has %d measurements, not %d", kill+1, whole[kill].Kind(), id, got, n)
		}
	}
	if late := records[len(records)-1].At.Sub(records[0].At); late > w.study.Deadline.In {
		t.Errorf("killed at record %d: it took %s", kill+1, late)
	}
}

// (a) What runs out of memory in graph capture takes with it what wants more
// memory with all else equal, and nothing else.
func TestOutOfMemoryTeaches(t *testing.T) {
	study := smallStudy(func(s *tune.Study) {
		s.Search = tune.Product
		s.Axes = map[string]tune.Axis{
			"--mem-fraction-static": {Values: values("0.88", "0.9", "0.92", "0.95"), Monotone: "memory-up"},
			"--moe-runner-backend":  {Values: values("flashinfer_cutlass", "flashinfer_trtllm"), Category: "backend"},
		}
	})
	synctest.Test(t, func(t *testing.T) {
		_, records := night(t, study, func(w *world) {
			w.starts = func(trial tune.Trial, _ tune.Stage) *tune.Ended {
				fraction, _ := trial.Set["--mem-fraction-static"].Number()
				if fraction >= 0.9 && trial.Set["--moe-runner-backend"].Text == "" { // of the base's own backend
					return &tune.Ended{Outcome: "crashed", Cause: "oom_graph_capture", Phase: "graph_capture"}
				}
				return nil
			}
		})
		launches, measured := launchesOf(records)
		for name, want := range map[string][2]bool{ // launched, measured
			"--mem-fraction-static 0.88":                                         {true, true},
			"--mem-fraction-static 0.9":                                          {true, false},
			"--mem-fraction-static 0.92":                                         {false, false},
			"--mem-fraction-static 0.95":                                         {false, false},
			"--mem-fraction-static 0.9, --moe-runner-backend flashinfer_trtllm":  {true, true},
			"--mem-fraction-static 0.95, --moe-runner-backend flashinfer_trtllm": {true, true},
		} {
			id := idOf(t, records, name)
			if got := [2]bool{launches[id] > 0, measured[id] > 0}; got != want {
				t.Errorf("%s: launched and measured %v, want %v", name, got, want)
			}
		}
	})
}

// (f) A run in which every request failed never wins, however fast it looks.
func TestAllFailedNeverWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, records := night(t, smallStudy(nil), func(w *world) {
			w.spoils = func(m *tune.Measured) {
				if w.alive.trial.Set["--moe-runner-backend"].Text != "" {
					m.Result.Completed, m.Result.Failed, m.Result.Metrics = 0, 64, map[string]float64{"output_throughput": 1e9, "p99_ttft_ms": 0}
				}
			}
		})
		if v := verdictOf(records); v.Winner != "" || w.serves != tune.BaselineID {
			t.Errorf("%q won, %q serves", v.Winner, w.serves)
		}
	})
}

// (g) Identical configurations have no winner, (h) a drift of the machine is
// told and makes none.
func TestNoFalseWinner(t *testing.T) {
	seeds := 5
	if long() {
		seeds = 400
	}
	study := smallStudy(func(s *tune.Study) {
		s.Axes = map[string]tune.Axis{"$SAME": {}}
		a := s.Axes["$SAME"]
		for i := range 20 {
			a.Values = append(a.Values, tune.TextValue(fmt.Sprint(i)))
		}
		s.Axes["$SAME"] = a
		s.Deadline = tune.Deadline{In: 10 * time.Hour}
	})
	for name, drift := range map[string]float64{"identical": 0, "drift": -0.03} {
		won := 0
		for seed := range seeds {
			synctest.Test(t, func(t *testing.T) {
				_, records := night(t, study, func(w *world) {
					w.noise = rand.New(rand.NewPCG(uint64(seed), 1))
					w.speed = func(_ tune.Trial, p tune.Point, launch int) float64 {
						return standIn(tune.Trial{}, p) * math.Exp(drift*float64(launch)/30)
					}
				})
				if verdictOf(records).Winner != "" {
					won++
				}
			})
		}
		if won*20 > seeds {
			t.Errorf("%s: something won in %d of %d nights", name, won, seeds)
		}
	}
}

// (j) A plan with more trials than fit leaves some out, and something serves
// before the deadline.
func TestDeadlineIsKept(t *testing.T) {
	for _, hours := range []int{2, 3, 4} {
		synctest.Test(t, func(t *testing.T) {
			study := smallStudy(func(s *tune.Study) {
				s.Promote = tune.PromoteServe
				s.Deadline = tune.Deadline{In: time.Duration(hours) * time.Hour}
				s.Axes["$MANY"] = tune.Axis{Values: values(strings.Fields("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20")...)}
			})
			_, records := night(t, study, nil)
			left := 0
			for _, r := range records {
				if s, ok := r.Body.(tune.Skipped); ok && s.Rule == "no-time" {
					left++
				}
				if _, ok := r.Body.(tune.Serving); ok && r.At.Sub(records[0].At) > study.Deadline.In {
					t.Errorf("within %d h: it served after %s", hours, r.At.Sub(records[0].At))
				}
			}
			if left == 0 {
				t.Errorf("within %d h: all trials were tried", hours)
			}
		})
	}
}

// (k) Where the winner does not start, the next that won serves; where none
// does, the baseline; and that is tried again.
func TestMorningFallsBack(t *testing.T) {
	study := smallStudy(func(s *tune.Study) {
		s.Promote, s.Finalists = tune.PromoteServe, 2
		s.Axes["--moe-runner-backend"] = tune.Axis{Values: values("flashinfer_trtllm", "triton_two"), Category: "backend"}
		s.Deadline = tune.Deadline{In: 10 * time.Hour}
	})
	for name, c := range map[string]struct{ broken, want string }{
		"next":     {"--moe-runner-backend flashinfer_trtllm", "--moe-runner-backend triton_two"},
		"baseline": {"--moe-runner-backend", tune.BaselineID},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				baselines := 0
				w, records := night(t, study, func(w *world) {
					w.speed = func(trial tune.Trial, p tune.Point, _ int) float64 {
						factor := map[string]float64{"triton_two": 1.05}[trial.Set["--moe-runner-backend"].Text]
						return standIn(trial, p) * max(1, factor)
					}
					w.starts = func(trial tune.Trial, stage tune.Stage) *tune.Ended {
						if trial.Baseline() && stage == tune.Morning {
							baselines++
						}
						if stage == tune.Morning && (strings.HasPrefix(trial.Name, c.broken) || baselines == 1) {
							return &tune.Ended{Outcome: "crashed", Cause: "nccl_error"}
						}
						return nil
					}
				})
				want := c.want
				if want != tune.BaselineID {
					want = idOf(t, records, c.want)
				}
				if w.serves != want {
					t.Errorf("%q serves, want %q\n%s", w.serves, want, strings.Join(w.lines, "\n"))
				}
			})
		})
	}
}

// (l) What was measured on another base is measured again.
func TestChangedBaseIsMeasuredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, study: smallStudy(nil)}
		p := &paper{world: w, left: 12}
		if _, _, err := w.run(p, tune.Facts{Base: "one"}, nil); !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		_, before := launchesOf(mustDecode(t, p))
		w.sweep()
		p.left = -1
		_, records, err := w.run(p, tune.Facts{Base: "two"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, after := launchesOf(records)
		var whole map[string]int
		synctest.Wait()
		other := &world{t: t, study: smallStudy(nil)}
		_, plain, err := other.run(&paper{world: other, left: -1}, tune.Facts{Base: "two"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, whole = launchesOf(plain)
		for id, n := range whole {
			if after[id]-before[id] < n {
				t.Errorf("%s: %d measurements before the change, %d in all, want %d after it", id, before[id], after[id], n)
			}
		}
	})
}

func mustDecode(t *testing.T, p *paper) []tune.Record {
	t.Helper()
	records, err := Decode(p.lines)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// A person's wish ends the trial of the moment, and the morning comes.
func TestAskedForTheMorning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, study: smallStudy(nil)}
		asked := make(chan string, 1)
		time.AfterFunc(fakeStart+time.Minute, func() { asked <- "Ctrl-C" }) // in the first measurement
		began := time.Now()
		end, records, err := w.run(&paper{world: w, left: -1}, tune.Facts{}, asked)
		if err != nil || end.Serving == 0 || w.serves != tune.BaselineID {
			t.Errorf("%+v %v: %q serves", end, err, w.serves)
		}
		if took := time.Since(began); took > 2*fakeStart+2*fakeLoad+2*time.Minute+fakeStop {
			t.Errorf("the morning came after %s\n%s", took, strings.Join(w.lines, "\n"))
		}
		if v := verdictOf(records); v.Winner != "" {
			t.Errorf("%q won", v.Winner)
		}
	})
}

// A tuner that is told to end stops its server and writes nothing about it: the
// next one makes the launch again.
func TestStoppedTunerGoesOn(t *testing.T) {
	for _, after := range []time.Duration{fakeStart / 2, fakeStart + fakeLoad/2, fakeStart + 2*fakeLoad} {
		synctest.Test(t, func(t *testing.T) {
			w := &world{t: t, study: smallStudy(nil)}
			p := &paper{world: w, left: -1}
			ctx, cancel := context.WithCancel(t.Context())
			w.ctx = ctx
			time.AfterFunc(after, cancel)
			if _, _, err := w.run(p, tune.Facts{}, nil); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if w.alive != nil {
				t.Errorf("after %s a server is left behind", after)
			}
			for _, r := range mustDecode(t, p) {
				if e, ok := r.Body.(tune.Ended); ok && after < fakeStart+2*fakeLoad {
					t.Errorf("after %s an end was written: %+v", after, e)
				}
			}
			w.ctx = nil
			end, records, err := w.run(p, tune.Facts{}, nil)
			if err != nil || end.Serving == 0 {
				t.Fatalf("%+v %v", end, err)
			}
			if launches, _ := launchesOf(records); launches[tune.BaselineID] < 5 {
				t.Errorf("the baseline had %d launches", launches[tune.BaselineID])
			}
		})
	}
}
