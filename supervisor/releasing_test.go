package supervisor

import (
	"strings"
	"testing"

	"sglaunch/internal/gpu"
)

// Who holds what decides whether the launch ends with 13 or the next attempt
// may wait for it.
func TestDescribeRelease(t *testing.T) {
	ghost := gpu.Ghost{Index: 3, Bytes: 100 << 30}
	foreign := gpu.Holder{Index: 1, PID: 1 << 30, Bytes: gpu.Read(20 << 30)}
	for name, c := range map[string]struct {
		release   gpu.Release
		everybody bool
		text      string
		foreign   bool
	}{
		"ours":               {gpu.Release{Ours: []gpu.Holder{foreign}}, true, "of this launch holds 20480 MiB of memory of GPU 1", false},
		"a ghost":            {gpu.Release{Ghosts: []gpu.Ghost{ghost}}, true, "GPU 3 holds 102400 MiB that no process explains", false},
		"a ghost that works": {gpu.Release{Ghosts: []gpu.Ghost{{Index: 3, Util: gpu.Read(100)}}}, true, "GPU 3 is at 100 % with no process", false},
		"in a container":     {gpu.Release{Ghosts: []gpu.Ghost{ghost}}, false, "in this container", true},
		"somebody else":      {gpu.Release{Foreign: []gpu.Holder{foreign}}, true, "process 1073741824 (of which nothing is known here), not of this launch", true},
		"a number only":      {gpu.Release{Foreign: []gpu.Holder{foreign}}, false, "process 1073741824, not of", true},
		"nobody named":       {gpu.Release{Short: []gpu.Need{{UUID: "GPU-a", Free: 1 << 30}}}, true, "only 1024 MiB of GPU GPU-a are free", true},
	} {
		t.Run(name, func(t *testing.T) {
			text, foreign := describeRelease(c.release, c.everybody)
			if !strings.Contains(text, c.text) || foreign != c.foreign {
				t.Errorf("got %q, foreign %v", text, foreign)
			}
		})
	}
}
