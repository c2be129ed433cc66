package supervisor

import (
	"testing"

	"sglaunch/internal/gpu"
)

// On a shared machine the neighbour's fault is the neighbour's.
func TestOnlyOurOwnXidsCount(t *testing.T) {
	sample := gpu.Sample{GPUs: []gpu.GPU{
		{Index: 0, UUID: "GPU-a"}, {Index: 1, UUID: "GPU-b", Instances: []gpu.GPU{{Index: 1, UUID: "MIG-b", Parent: "GPU-b"}}}, {Index: 2, UUID: "GPU-c"},
	}}
	for name, c := range map[string]struct {
		devices []string
		xid     gpu.Xid
		ours    bool
	}{
		"ours":                  {[]string{"GPU-a"}, gpu.Xid{UUID: "GPU-a"}, true},
		"another's":             {[]string{"GPU-a"}, gpu.Xid{UUID: "GPU-c"}, false},
		"of our instance's GPU": {[]string{"MIG-b"}, gpu.Xid{UUID: "GPU-b"}, true},
		"of an unknown GPU":     {[]string{"GPU-a"}, gpu.Xid{Index: -1}, false},
		"where all are ours":    {[]string{"GPU-a", "GPU-b", "GPU-c"}, gpu.Xid{Index: -1}, true},
		"where none is known":   {[]string{"GPU-x"}, gpu.Xid{UUID: "GPU-a"}, true},
	} {
		w := newWatcher(&hands{Setup: Setup{Devices: c.devices}})
		if got := w.ours(c.xid, sample); got != c.ours {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
