package proc

import (
	"errors"
	"os"
	"testing"
)

func TestParsePressure(t *testing.T) {
	some, full, err := parsePressure([]byte("some avg10=12.34 avg60=1.00 avg300=0.00 total=5\nfull avg10=0.50 avg60=0.00 avg300=0.00 total=1\n"))
	if some != 12.34 || full != 0.5 || err != nil {
		t.Errorf("%v %v %v", some, full, err)
	}
	for _, bad := range []string{"", "some", "some avg10=x", "none avg10=1", "full avg10=1\n"} {
		if some, full, err := parsePressure([]byte(bad)); err == nil {
			t.Errorf("%q: %v %v", bad, some, full)
		}
	}
}

func TestReadPressure(t *testing.T) {
	p, err := ReadPressure(MachinePressure)
	if _, missing := os.Stat("/proc/pressure/io"); (missing == nil) != (err == nil) && !errors.Is(err, errStuck) {
		t.Errorf("%+v, %v", p, err)
	}
	if p.CPU < 0 || p.CPU > 100 || p.IOFull > p.IO {
		t.Errorf("%+v", p)
	}
}

// A cgroup tells of its own members; where there is none, the machine does.
func TestPressureOf(t *testing.T) {
	folder := PressureOf(os.Getpid())
	if folder != MachinePressure && !isCgroup(folder) {
		t.Errorf("%q is neither the machine nor a cgroup", folder)
	}
	if got := PressureOf(1 << 30); got != MachinePressure {
		t.Errorf("of nobody: %q", got)
	}
	dir := t.TempDir()
	for _, name := range []string{"cpu", "memory", "io"} {
		if err := os.WriteFile(dir+"/"+name+".pressure", []byte("some avg10=64.00 avg60=0 avg300=0 total=1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if p, err := ReadPressure(dir); p.IO != 64 || err != nil {
		t.Errorf("%+v, %v", p, err)
	}
	if err := os.Remove(dir + "/io.pressure"); err != nil {
		t.Fatal(err)
	}
	if p, err := ReadPressure(dir); err == nil {
		t.Errorf("nothing is known of IO, and yet: %+v", p)
	}
}
