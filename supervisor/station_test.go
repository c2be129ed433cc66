package supervisor

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sglaunch/internal/shim/wire"
)

// Whatever the server says about itself, no secret of it is told outside.
func TestMasked(t *testing.T) {
	procs := []wire.Proc{{PID: 1}}
	got := masked(map[string]any{"text": "--api-key abcdef", "what": []string{"HF_TOKEN=hf_abcdef"}, "n": 3, "procs": procs})
	if diff := cmp.Diff(map[string]any{"text": "--api-key ****", "what": []string{"HF_TOKEN=****"}, "n": 3, "procs": procs}, got); diff != "" {
		t.Error(diff)
	}
	if masked(nil) != nil {
		t.Error("nothing became something")
	}
}
