package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sglaunch/internal/statedir"
	"sglaunch/internal/tune"
	"sglaunch/supervisor"
)

// longNight runs only where the full-size checks are wanted: each of these
// nights makes a dozen real launches.
func longNight(t *testing.T) {
	t.Helper()
	if os.Getenv("SGLAUNCH_LONG") == "" {
		t.Skip("SGLAUNCH_LONG=1 runs whole nights on real processes")
	}
	t.Parallel()
}

// A whole night: out of memory in graph capture teaches, the best of the known
// function wins in fresh launches in spite of noise, and serves; interrupted in
// the middle by kill -9, and after the night.
func TestTuneWholeNight(t *testing.T) {
	longNight(t)
	u := openStudy(t, tuneHead+`promote = "serve"
[axis."--mem-fraction-static"]
values = [0.9, 0.92]
[axis."--moe-runner-backend"]
values = ["flashinfer_trtllm"]
[axis.patches]
values = ["flashinfer-cutlass-autotune"]
[[patch]]
use = "flashinfer-cutlass-autotune"
[probe]
input = 2000
output = 32
concurrency = 16
requests = 32
`, "tight-capture")
	u.run("SGLAUNCH_REHEARSAL_BENCH=noise=0.0005,launch=0.0005,seed=5")
	u.await(`launch 3 \(screen\)`)
	if err := u.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-u.done
	u.run("SGLAUNCH_REHEARSAL_BENCH=noise=0.0005,launch=0.0005,seed=5")
	u.await(`launch 8 is ready`) // each wait has a limit of its own
	u.await(`, probe: `)
	u.await(`\(morning\): .*flashinfer_trtllm`)
	if err := u.cmd.Process.Kill(); err != nil { // while the winner is to prove itself
		t.Fatal(err)
	}
	<-u.done
	u.run("SGLAUNCH_REHEARSAL_BENCH=noise=0.0005,launch=0.0005,seed=5")
	u.await(serves)
	st := u.night()
	if !strings.Contains(st.Verdict, "flashinfer_trtllm") || !strings.Contains(st.Serving, "flashinfer_trtllm") || st.Skipped == 0 {
		t.Errorf("the night found %+v", st)
	}
	proven := false
	for _, r := range u.records() {
		if b, ok := r.Body.(tune.Ready); ok && b.Patches["flashinfer-cutlass-autotune"] == "effective" {
			proven = true
		}
	}
	if !proven {
		t.Error("no launch was proven to be patched")
	}
	if _, err := os.Stat(filepath.Join(u.dir, "state", "tune", "night", "winner.toml")); err != nil {
		t.Error(err)
	}
	u.stopped()
	u.run()
	u.await(serves) // after a reboot the unit of the night is the unit that serves
	u.stopped()
	u.untouched()
}

// A production server is drained, put back, drained again and stopped before the
// first trial, and what serves in the morning is put back in its place.
func TestTuneTakesOver(t *testing.T) {
	longNight(t)
	u := openStudy(t, tuneHead+`[axis."--chunked-prefill-size"]
values = [4096]
[takeover]
launch = "prod"
drain = ["sh", "-c", "echo drain >>router"]
return = ["sh", "-c", "echo return >>router"]
`)
	prod := startLaunch(t, u.dir, u.env, "run", "-c", "base.toml")
	prod.await(readyLine)
	u.run()
	u.await(`launch 1 \(screen\)`)
	if code := prod.wait(); code != exitOK {
		t.Errorf("the production launch ended with %d:\n%s", code, prod.stderr.bytes())
	}
	if calls := u.router(); calls != "drain return drain" {
		t.Errorf("before the first trial the router heard: %s", calls)
	}
	u.await(serves)
	if calls := u.router(); calls != "drain return drain return" {
		t.Errorf("in the morning the router had heard: %s", calls)
	}
	u.stopped()
	u.untouched()
}

func (u *tuning) router() string {
	u.t.Helper()
	text, err := os.ReadFile(filepath.Join(u.dir, "router"))
	if err != nil {
		u.t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(text)), " ")
}

// A drain that fails leaves the production server as it is.
func TestTuneTakeoverRefused(t *testing.T) {
	longNight(t)
	u := openStudy(t, tuneHead+`[axis."--chunked-prefill-size"]
values = [4096]
[takeover]
launch = "prod"
drain = ["sh", "-c", "echo the router does not answer; exit 1"]
`)
	prod := startLaunch(t, u.dir, u.env, "run", "-c", "base.toml")
	prod.await(readyLine)
	u.run()
	if code := u.wait(); code == exitOK || !strings.Contains(string(u.stderr.bytes()), "the router does not answer; the server that runs is left as it is") {
		t.Errorf("exit code %d:\n%s", code, u.stderr.bytes())
	}
	dir := statedir.Dir{State: filepath.Join(u.dir, "state"), Runtime: filepath.Join(u.dir, "state", "run")}
	if supervisor.Find(dir, "prod").Shim.PID != prod.cmd.Process.Pid {
		t.Error("the production launch is gone")
	}
	prod.signal(syscall.SIGTERM)
	prod.wait()
	u.untouched()
}

// A client that stalls is ended within its patience, one that measures itself
// and one whose requests all fail give no figures: nothing wins.
func TestTuneBadClients(t *testing.T) {
	longNight(t)
	for trouble, want := range map[string]string{
		"stall":      `nothing completed for 3s`,
		"all-failed": `no request was completed|32 of 32 requests failed|32 requests failed`,
		"no-record":  `output_throughput \d`, // the table is a witness
	} {
		t.Run(trouble, func(t *testing.T) {
			t.Parallel()
			u := openStudy(t, tuneHead+"[axis.\"--moe-runner-backend\"]\nvalues = [\"flashinfer_trtllm\"]\n")
			text, err := os.ReadFile(filepath.Join(u.dir, "tune.toml"))
			if err != nil {
				t.Fatal(err)
			}
			u.write("tune.toml", string(text)+"quiet = \"3s\"\n")
			u.run("SGLAUNCH_REHEARSAL_BENCH=" + trouble)
			u.await(want)
			u.await(serves)
			if st := u.night(); trouble != "no-record" && (st.Winner != "" || st.Serving != tune.BaselineID) {
				t.Errorf("the night found %+v", st)
			}
			u.stopped()
			u.untouched()
		})
	}
}

// kill -9 of the tuner at random moments of a night: each one that comes back
// ends what is left and goes on; in the end every launch has its number once, a
// verdict was reached, something serves and nothing else lives.
func TestTuneKilledAtRandom(t *testing.T) {
	longNight(t)
	u := openStudy(t, tuneHead+"[axis.\"--moe-runner-backend\"]\nvalues = [\"flashinfer_trtllm\"]\n[axis.\"--mem-fraction-static\"]\nvalues = [0.9]\n", "tight-load")
	moments := rand.New(rand.NewPCG(11, 4))
	for range 8 {
		u.run()
		select { // a moment, not a guess at how long anything takes
		case <-time.After(time.Duration(moments.Int64N(int64(15 * time.Second)))):
		case <-u.done:
		}
		_ = u.cmd.Process.Kill()
		<-u.done
	}
	u.run()
	u.await(serves)
	launches, decided := 0, false
	for _, r := range u.records() {
		switch b := r.Body.(type) {
		case tune.Intended:
			if launches++; b.Launch != launches {
				t.Errorf("launch %d follows launch %d", b.Launch, launches-1)
			}
		case tune.Decided:
			decided = true
		}
	}
	if !decided || launches < 5 {
		t.Errorf("after %d launches a verdict was reached: %v", launches, decided)
	}
	u.oneServer()
	u.stopped()
	u.untouched()
}
