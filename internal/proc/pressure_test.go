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
	p, err := ReadPressure()
	if _, missing := os.Stat("/proc/pressure/io"); (missing == nil) != (err == nil) && !errors.Is(err, errStuck) {
		t.Errorf("%+v, %v", p, err)
	}
	if p.CPU < 0 || p.CPU > 100 || p.IOFull > p.IO {
		t.Errorf("%+v", p)
	}
}
