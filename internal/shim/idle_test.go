package shim_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"sglaunch/internal/proc"
	"sglaunch/internal/shim/wire"
)

// In service the shim costs next to nothing. The figures are logged; the limits
// leave room for a busy machine.
func TestIdleCost(t *testing.T) {
	settle, span := time.Second, 2*time.Second
	if os.Getenv("SGLAUNCH_LONG") != "" {
		settle, span = 30*time.Second, 60*time.Second
	}
	r := newRig(t, rigOptions{})
	p := r.supervisor()
	p.spawn(r.spec(1, "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do sleep 1000 & done; echo up; exec sleep 1000"))
	p.awaitOutput("up")
	time.Sleep(settle) // what is measured is the passing of time
	before, err := proc.Identify(r.pid())
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(span)
	after, err := proc.Identify(r.pid())
	if err != nil {
		t.Fatal(err)
	}
	cpu := time.Duration(after.CPU-before.CPU) * proc.TickLength
	share := 100 * cpu.Seconds() / span.Seconds()
	pss := pssOf(t, r.pid())
	t.Logf("%.2f %% of a core over %v, %d KiB PSS", share, span, pss)
	if share > 5 {
		t.Errorf("the shim uses %.1f %% of a core", share)
	}
	if pss > 40<<10 {
		t.Errorf("the shim holds %d KiB", pss)
	}
	p.kill(1)
	p.await(wire.TreeGone)
	p.finish(0)
	r.exit()
}

var pssLine = regexp.MustCompile(`(?m)^Pss:\s+(\d+) kB`)

func pssOf(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := pssLine.FindSubmatch(text)
	if m == nil {
		t.Fatalf("no PSS in %q", text)
	}
	n, _ := strconv.Atoi(string(m[1]))
	return n
}
