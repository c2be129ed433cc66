package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sglaunch/internal/proc"
	"sglaunch/internal/rehearsal"
)

// nest is a server as hard to end as SGLang is, that starts at once: processes
// that left the session, that lost their parents, that ignore signals.
const nest = `trap '' TERM HUP
setsid sh -c "trap '' TERM HUP; sleep 1000; :" &
(setsid sleep 1000 &) &
sh -c "sleep 1000 & sleep 1000; :" &
echo '[2026-02-19 03:00:00] server_args=ServerArgs(model_path="m", tp_size=1)'
sleep 0.1
echo '[2026-02-19 03:00:01] Load weight begin. avail mem=170.00 GB'
sleep 0.1
echo '[2026-02-19 03:00:02] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=70.00 GB, mem usage=100.00 GB.'
echo '[2026-02-19 03:00:03] The server is fired up and ready to roll!'
while :; do sleep 1; done`

// moment is one death of sglaunch.
type moment struct {
	who   string        // supervisor, sampler, shim, all
	after time.Duration // from the start, or from the stop
	stop  bool          // the launch is being stopped
}

func (m moment) String() string {
	from := "the start"
	if m.stop {
		from = "the stop"
	}
	return fmt.Sprintf("%s %s after %s", m.who, m.after, from)
}

// kill -9 of each process of sglaunch at any moment of a patched launch. The
// server survives its supervisor and its sampler; after the shim's death the
// supervisor, and after the death of all `sglaunch recover`, ends everything and
// restores the file. SGLAUNCH_SEED repeats a run.
func TestKilledAtRandomMoments(t *testing.T) {
	runs := 4
	if os.Getenv("SGLAUNCH_LONG") != "" {
		runs = 1000
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SGLAUNCH_SEED"); s != "" {
		if _, err := fmt.Sscan(s, &seed); err != nil {
			t.Fatal(err)
		}
	}
	b := openNest(t)
	run := "before the first"
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("run %s, SGLAUNCH_SEED=%d", run, seed)
		}
	})
	for i := range runs {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		m := moment{
			who:   []string{"supervisor", "sampler", "shim", "all"}[i%4],
			after: time.Duration(r.Int64N(int64(900 * time.Millisecond))), stop: r.IntN(3) == 0,
		}
		run = fmt.Sprintf("%d, %s", i, m)
		b.survive(t, m)
		if t.Failed() {
			t.Fatalf("%s", b.stderr.bytes())
		}
		if done := i + 1; done%50 == 0 {
			t.Logf("%d deaths survived", done)
		}
	}
}

// openNest prepares launches of the nest.
func openNest(t *testing.T) *box {
	t.Helper()
	lib, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	b := &box{dir: t.TempDir()}
	if b.stage, err = rehearsal.Build(filepath.Join(b.dir, "stage"), rehearsal.Options{GPUs: 2}); err != nil {
		t.Fatal(err)
	}
	b.stage.Lib = lib
	if b.before, err = digestOf(b.stage.Site); err != nil {
		t.Fatal(err)
	}
	toml := fmt.Sprintf("[server]\nname = \"nest\"\npython = %q\n[stop]\ndrain = \"0s\"\ngrace = \"100ms\"\nrelease = \"10s\"\n"+
		"[gpu]\nsample = { starting = \"100ms\" }\n[[patch]]\nuse = \"flashinfer-cutlass-autotune\"\n", b.stage.Python)
	if err := os.WriteFile(filepath.Join(b.dir, "launch.toml"), []byte(toml), 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}

// survive starts a launch, kills part of it, and looks at what is left.
func (b *box) survive(t *testing.T, m moment) {
	server := []string{"sh", "-c", nest, "--tp", "1", "--moe-runner-backend", "flashinfer_cutlass"}
	args := append([]string{"run", "-c", filepath.Join(b.dir, "launch.toml"), "--"}, server...)
	b.launched = startLaunch(t, b.dir, b.stage.Env(), args...)
	if m.stop {
		b.await(`server is process`)
		b.signal(syscall.SIGTERM)
	}
	time.Sleep(m.after) // the moment is the point
	b.strike(m.who)
	switch m.who {
	case "supervisor", "sampler":
		if !m.stop {
			b.await(`ready`)
			b.signal(syscall.SIGTERM)
		}
		if code := b.wait(); code != exitOK {
			t.Errorf("exit code %d", code)
		}
	case "shim":
		b.left(time.Minute)
	case "all":
		<-b.done
		b.heal()
	}
	b.gone(30 * time.Second)
	b.unchanged()
}

// strike kills processes of sglaunch, as far as there are any.
func (b *box) strike(who string) {
	kill := func(name string) {
		all, err := proc.Descendants(b.cmd.Process.Pid)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, p := range all {
			if strings.Contains(proc.Command(p), name) {
				_ = syscall.Kill(p.PID, syscall.SIGKILL)
			}
		}
	}
	switch who {
	case "supervisor":
		kill(supervisorCommand)
	case "sampler":
		kill(samplerCommand)
	case "shim":
		_ = b.cmd.Process.Kill()
	case "all": // at one blow, as far as that goes: nobody may act in between
		_ = b.cmd.Process.Signal(syscall.SIGSTOP)
		kill(supervisorCommand)
		kill(samplerCommand)
		_ = b.cmd.Process.Kill()
	}
}

// left waits until no process of sglaunch is left of a launch whose shim died.
func (b *box) left(limit time.Duration) {
	b.t.Helper()
	<-b.done
	b.none("SGLAUNCH_STATE="+filepath.Join(b.dir, "state"), limit)
}

// heal runs sglaunch recover, and returns what it said.
func (b *box) heal() string {
	b.t.Helper()
	self, err := os.Executable()
	if err != nil {
		b.t.Fatal(err)
	}
	cmd := exec.Command(self, "recover")
	cmd.Env = append(os.Environ(), "SGLAUNCH_STATE="+filepath.Join(b.dir, "state"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Errorf("recover: %v\n%s", err, out)
	}
	return string(out)
}
