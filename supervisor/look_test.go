package supervisor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sglaunch/internal/proc"
	"sglaunch/internal/serve"
	"sglaunch/internal/shim/wire"
)

// A shim whose supervisor has written down the end, and that lives, waits for a reader.
func TestStatusOfAnEndThatWaits(t *testing.T) {
	dir := stateDir(t)
	shim := exec.Command("sleep", "1000")
	must(t, shim.Start())
	t.Cleanup(func() { _ = shim.Process.Kill(); _ = shim.Wait() })
	p, err := proc.Identify(shim.Process.Pid)
	must(t, err)
	l := leftBehind(t, dir, "late", wire.Proc{PID: p.PID, Start: p.Start}, proc.BootID())
	look := func() serve.Status {
		st, err := Look(t.Context(), dir, Outside{Name: "late", Socket: filepath.Join(t.TempDir(), "none"), Shim: p.ID})
		must(t, err)
		return st
	}
	if st := look(); st.State != serve.StateBlind || strings.Contains(st.Text, "is kept") {
		t.Errorf("without a server: %+v", st)
	}
	r, err := ReadLaunchRecord(l.Record())
	must(t, err)
	r.Ended, r.Code = time.Now(), 11
	must(t, r.write(l.Record()))
	if st := look(); st.State != serve.StateEnded || st.Exit == nil || st.Exit.Code != 11 || st.Text != waitsForReader {
		t.Errorf("ended: %+v", st)
	}
}

// Of a launch whose shim died without an end, status says who of the server lives
// and, where the supervisor lived longer, how far that one came.
func TestStatusOfWhatIsLeft(t *testing.T) {
	dir := stateDir(t)
	l := leftBehind(t, dir, "dead", deadProcess(t), proc.BootID())
	look := func(state string, members int, want ...string) {
		t.Helper()
		st, err := Look(t.Context(), dir, Outside{Name: "dead", Socket: filepath.Join(t.TempDir(), "none")})
		must(t, err)
		if st.State != state || st.Processes.Members != members {
			t.Errorf("%s with %d members", st.State, st.Processes.Members)
		}
		for _, text := range append(want, "sglaunch recover") {
			if !strings.Contains(st.Text, text) {
				t.Errorf("%q lacks %q", st.Text, text)
			}
		}
	}
	look(serve.StateDead, 0, "sglaunch was killed", "no process of the server is left")
	p, _ := member(t, l)
	look(serve.StateDead, 1, "sglaunch was killed", fmt.Sprintf("process %d (", p.PID))
	said := `{"v":1,"event":"launch_ended","text":"the shim died; processes would not go"}`
	must(t, os.WriteFile(l.Attempt(1).Events(), []byte(said+"\n"), 0o600))
	look(serve.StateDead, 1, "the shim died; processes would not go; of the server there is left")
}

func TestWhyUnheard(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	if why := whyUnheard(path); !strings.HasSuffix(why, "is not there") {
		t.Errorf("no socket: %s", why)
	}
	must(t, os.WriteFile(path, nil, 0o600))
	if why := whyUnheard(path); !strings.HasSuffix(why, "is no socket") {
		t.Errorf("a file: %s", why)
	}
}
