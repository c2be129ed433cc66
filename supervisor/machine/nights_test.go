package machine

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// nightOptions: the rungs that an operator would list.
func nightOptions(act string) Options {
	opt := DefaultOptions()
	opt.SGLang, opt.Act, opt.Argv = true, act, []string{"python", "-m", "sglang.launch_server"}
	opt.Rungs, _ = ReadyRungs(RungNames())
	return opt
}

// TestNights plays random nights with crashes, hangs, lost answers, deaths of
// the supervisor and clocks that jump: 5,000, or 100,000 with SGLAUNCH_LONG=1.
// SGLAUNCH_NIGHT=seed plays one again and tells its story.
func TestNights(t *testing.T) {
	if one, err := strconv.ParseUint(os.Getenv("SGLAUNCH_NIGHT"), 10, 64); err == nil {
		w, wrong := chaoticNight(one)
		t.Logf("%s\n%s", strings.Join(w.decided, "\n"), wrong)
		return
	}
	nights := 5_000 / nightShare
	if long {
		nights = 100_000
	}
	each(nights, func(seed uint64) {
		if w, wrong := chaoticNight(seed); wrong != "" {
			t.Errorf("night %d: %s\n%s", seed, wrong, strings.Join(w.decided, "\n"))
		}
	})
}

func chaoticNight(seed uint64) (w *world, wrong string) {
	w = newWorld(seed, nightOptions([]string{"start", "all", "observe"}[seed%3]), true)
	if wrong = w.play(); wrong == "" {
		wrong = w.close()
	}
	return w, wrong
}

// each calls f for every seed, on all cores.
func each(n int, f func(seed uint64)) {
	var all sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for worker := range workers {
		all.Go(func() {
			for seed := worker; seed < n; seed += workers {
				f(uint64(seed))
			}
		})
	}
	all.Wait()
}

// TestServedTime compares the time served over random nights with that of an
// operator who knew every cause at once.
func TestServedTime(t *testing.T) {
	nights := 1_000 / nightShare
	if long {
		nights = 20_000
	}
	figures := map[string]float64{}
	for _, act := range []string{"all", "start", "observe"} {
		ours, best := servedTime(t, nights, act)
		figures[act] = ours.Hours() / best.Hours()
	}
	t.Logf("time served / time an oracle would have served, over %d nights: act=all %.4f, act=start (the default) %.4f, act=observe %.4f",
		nights, figures["all"], figures["start"], figures["observe"])
	if figures["all"] < 0.97 {
		t.Errorf("act=all serves %.4f of what was possible, want at least 0.97", figures["all"])
	}
	if !(figures["all"] > figures["start"] && figures["start"] > figures["observe"]) {
		t.Error("acting on more evidence serves no longer")
	}
}

func servedTime(t *testing.T, nights int, act string) (ours, best time.Duration) {
	var mu sync.Mutex
	each(nights, func(seed uint64) {
		w := newWorld(seed, nightOptions(act), false)
		wrong := w.play()
		possible := oracle(w.episode)
		mu.Lock()
		defer mu.Unlock()
		if wrong != "" {
			t.Errorf("night %d: %s", seed, wrong)
		}
		if os.Getenv("SGLAUNCH_WORST") == act && possible-w.served > time.Hour {
			fmt.Printf("night %d lost %s of %s, ended in %s\n\t%s\n", seed, (possible - w.served).Round(time.Minute),
				possible.Round(time.Minute), w.m.State(), strings.Join(w.decided, "\n\t"))
		}
		ours, best = ours+w.served, best+possible
	})
	return ours, best
}
