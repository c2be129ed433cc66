package proc

import (
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"sglaunch/internal/eventually"
)

const testMarker = "PROC_TEST_MEMBER=1"

// marked starts a member in a session of its own that waits for a line.
func marked(t *testing.T, script string) (p Proc, goOn func()) {
	t.Helper()
	cmd := exec.Command("sh", "-c", "echo up; read line; "+script)
	cmd.Env = append(os.Environ(), testMarker)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	_, p = begin(t, cmd)
	return p, func() { _, _ = in.Write([]byte("go on\n")) }
}

func (h *hunt) mustLook(t *testing.T) (members []Proc, complete bool) {
	t.Helper()
	members, complete, err := h.look()
	if err != nil {
		t.Fatal(err)
	}
	return members, complete
}

// A process that could not be asked, as on a busy machine, is asked again; until
// then nobody says that all were seen.
func TestWhoDoesNotAnswerIsAskedAgain(t *testing.T) {
	p, _ := marked(t, ":")
	h := newHunt(Membership{Marker: testMarker})
	for range cap(stuck) {
		stuck <- struct{}{}
	}
	members, complete := h.mustLook(t)
	for range cap(stuck) {
		<-stuck
	}
	if len(members) > 0 || complete {
		t.Errorf("nobody answered: members %v, complete %v", members, complete)
	}
	members, _ = h.mustLook(t)
	if len(members) != 1 || members[0].ID != p.ID {
		t.Errorf("members %v, want %v", members, p)
	}
}

// A session is remembered from look to look: who was born into it with nothing
// else to show belongs, though all that were seen before have ended.
func TestSessionIsRememberedBetweenLooks(t *testing.T) {
	p, goOn := marked(t, "env -i sleep 100 <&- >&- 2>&- & exit")
	h := newHunt(Membership{Marker: testMarker})
	if members, _ := h.mustLook(t); len(members) != 1 {
		t.Fatalf("members %v, want %v", members, p)
	}
	goOn()
	eventually.True(t, "the end of the leader", func() bool { return !Alive(p.ID) })
	members, _ := h.mustLook(t)
	if !slices.ContainsFunc(members, func(q Proc) bool { return q.Session == p.PID }) {
		t.Errorf("members %v: who is in session %d is missing", members, p.PID)
	}
}
