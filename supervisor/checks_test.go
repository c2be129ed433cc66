package supervisor

import (
	"testing"

	"sglaunch/internal/preflight"
	"sglaunch/supervisor/machine"
)

// What a check refuses has the exit code that the launch would end with, and
// where several refuse, the one for which there is the least hope.
func TestRefusalCode(t *testing.T) {
	failed := func(causes ...string) (checks []preflight.Check) {
		checks = append(checks, preflight.Check{Name: "disk", Status: preflight.OK})
		for _, c := range causes {
			checks = append(checks, preflight.Check{Name: c, Status: preflight.Fail, Cause: c, Found: c + " it is"})
		}
		return checks
	}
	for _, test := range []struct {
		checks []preflight.Check
		code   int
		cause  string
	}{
		{failed(), 0, ""},
		{failed("port_in_use"), machine.CodeLater, "port_in_use"},
		{failed("port_in_use", "import_error"), machine.CodeNever, "import_error"},
		{failed("model_path_missing", "port_in_use"), machine.CodeNever, "model_path_missing"},
		{failed("driver_mismatch"), machine.CodeHeld, "driver_mismatch"},
	} {
		if got := RefusalCode(test.checks); got != test.code {
			t.Errorf("%v: code %d, want %d", test.checks, got, test.code)
		}
		if got := refusal(test.checks); got.Cause != test.cause {
			t.Errorf("%v: cause %q, want %q", test.checks, got.Cause, test.cause)
		}
	}
}
