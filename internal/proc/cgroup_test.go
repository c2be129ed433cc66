package proc

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sglaunch/internal/eventually"
)

func TestCgroupFolders(t *testing.T) {
	const (
		pure      = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
		hybrid    = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
		container = "99 23 0:26 /docker/af31 /sys/fs/cgroup ro - cgroup2 cgroup rw\n"
		blank     = `30 23 0:26 / /mnt/my\040groups rw - cgroup2 cgroup2 rw` + "\n"
	)
	for name, c := range map[string]struct {
		mountinfo, cgroup string
		want              []string
	}{
		"pure":                    {pure, "0::/user.slice/run-1.scope\n", []string{"/sys/fs/cgroup/user.slice/run-1.scope"}},
		"root of the hierarchy":   {pure, "0::/\n", []string{"/sys/fs/cgroup"}},
		"hybrid":                  {hybrid, "1:cpu:/x\n0::/a\n", []string{"/sys/fs/cgroup/unified/a"}},
		"only version 1":          {hybrid, "1:cpu:/x\n", nil},
		"a part is mounted":       {container, "0::/docker/af31/x\n", []string{"/sys/fs/cgroup/x"}},
		"another part is mounted": {container, "0::/docker/b\n", nil},
		"a blank":                 {blank, "0::/a\n", []string{"/mnt/my groups/a"}},
		"outside the namespace":   {pure, "0::/../b\n", nil},
		"outside altogether":      {pure, "0::/..\n", nil},
		"two mounts":              {pure + blank, "0::/a\n", []string{"/sys/fs/cgroup/a", "/mnt/my groups/a"}},
		"nothing":                 {"", "", nil},
		"torn":                    {"30 23 -\ncgroup2\n - cgroup2 ", "0::", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, cgroupFolders(c.mountinfo, c.cgroup)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// testCgroup is a cgroup of the test's; nil where none is permitted, which has to
// be told.
func testCgroup(t *testing.T) *Cgroup {
	t.Helper()
	c, err := PlanCgroup("sglaunch-test-" + strconv.Itoa(os.Getpid()) + "-" + t.Name())
	if err == nil {
		err = c.Make()
	}
	if err != nil {
		if !strings.HasPrefix(err.Error(), "cannot ") {
			t.Errorf("it is told as %v", err)
		}
		t.Logf("no cgroup is permitted here: %v", err)
		return nil
	}
	t.Cleanup(func() { _ = c.Kill(); c.Remove() })
	if c.Make() == nil {
		t.Error("one that exists was taken")
	}
	return c
}

// stray starts in a cgroup what shows no other sign: its parents are gone, its
// session is its own, its environment is empty.
func stray(t *testing.T, c *Cgroup, script string) Proc {
	t.Helper()
	folder, err := c.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	earlier := c.Members()
	cmd := exec.Command("sh", "-c", "setsid env -i sh -c '"+script+"' & exit")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(folder.Fd())}
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	var found Proc
	eventually.True(t, "the stray", func() bool {
		for _, p := range c.Members() {
			known := slices.ContainsFunc(earlier, func(e Proc) bool { return e.ID == p.ID })
			if p.Comm == "sleep" && !known {
				found = p
			}
		}
		return found.PID != 0
	})
	return found
}

func killAll(t *testing.T, m Membership) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if gone, left := KillAll(ctx, m); !gone {
		t.Errorf("left %+v", left)
	}
}

// Who shows no other sign dies with the cgroup, also in one that it made below;
// the cgroup goes too.
func TestCgroupEndsWhoShowsNoOtherSign(t *testing.T) {
	c := testCgroup(t)
	if c == nil {
		return
	}
	if c.Populated() {
		t.Error("a new cgroup is populated")
	}
	p := stray(t, c, "exec sleep 1000")
	below := filepath.Join(c.Path, "below")
	q := stray(t, c, "mkdir "+below+"; echo $$ >"+below+"/cgroup.procs; exec sleep 1001")
	if members := c.Members(); !c.Populated() || len(members) != 2 {
		t.Errorf("members %+v", members)
	}
	c.Remove()
	if !c.Populated() {
		t.Fatal("a populated cgroup was removed")
	}
	killAll(t, Membership{Cgroup: c})
	if Alive(p.ID) || Alive(q.ID) {
		t.Error("somebody lives")
	}
	if _, err := os.Stat(c.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the cgroup is still there: %v", err)
	}
	c.Remove() // again: no harm
	killAll(t, Membership{Cgroup: c})
}

// The blow waits for no look, which a storm of births may hold up for long: neither
// that to the cgroup nor that to those who are known.
func TestFirstBlowWaitsForNoLook(t *testing.T) {
	_, known := child(t, "sh", "-c", "echo up; exec sleep 1000")
	struck := []Proc{known}
	c := testCgroup(t)
	if c != nil {
		struck = append(struck, stray(t, c, "exec sleep 1000"))
	}
	slow := func() ([]Proc, bool, error) {
		for _, p := range struck {
			eventually.True(t, "the end before a look has ended", func() bool { return !Alive(p.ID) })
		}
		return nil, true, nil
	}
	if gone, left := EndAll(t.Context(), struck[:1], slow, c); !gone {
		t.Errorf("left %+v", left)
	}
}

// Where the kernel cannot kill a cgroup at one blow its members are struck one by
// one.
func TestCgroupIsASignOfMembership(t *testing.T) {
	c := testCgroup(t)
	if c == nil {
		return
	}
	p := stray(t, c, "exec sleep 1000")
	h := newHunt(Membership{Cgroup: c})
	if members, _ := h.mustLook(t); len(members) != 1 || members[0].ID != p.ID {
		t.Errorf("members %+v", members)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if gone, left := EndAll(ctx, nil, h.look, nil); !gone || c.Populated() {
		t.Errorf("left %+v", left)
	}
}

// A note leads to the very cgroup that was made, or nowhere.
func TestNotedCgroup(t *testing.T) {
	records := filepath.Join(t.TempDir(), "records")
	if c := NotedCgroup(records); c != nil {
		t.Errorf("without a note: %+v", c)
	}
	if err := NoteCgroup(records, nil, unix.EROFS); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(records + noteSuffix)
	if !strings.Contains(string(text), unix.EROFS.Error()) || NotedCgroup(records) != nil {
		t.Errorf("none was made; the note is %s", text)
	}
	c := testCgroup(t)
	if c == nil {
		return
	}
	note := func(change func(*Cgroup)) *Cgroup {
		noted := *c
		change(&noted)
		if err := NoteCgroup(records, &noted, nil); err != nil {
			t.Fatal(err)
		}
		return NotedCgroup(records)
	}
	if diff := cmp.Diff(c, note(func(*Cgroup) {})); diff != "" {
		t.Error(diff)
	}
	for name, change := range map[string]func(*Cgroup){
		"of another boot": func(c *Cgroup) { c.Boot = "another" },
		"no cgroup":       func(c *Cgroup) { c.Path = filepath.Dir(records) },
		"no path":         func(c *Cgroup) { c.Path = "" },
		"our own":         func(c *Cgroup) { c.Path, _ = ownCgroup() },
	} {
		if got := note(change); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	_ = note(func(*Cgroup) {})
	c.Remove()
	if got := NotedCgroup(records); got != nil {
		t.Errorf("once it is gone: %+v", got)
	}
	if err := os.WriteFile(records+noteSuffix, []byte(`{"path":"/sys`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := NotedCgroup(records); got != nil {
		t.Errorf("half a note: %+v", got)
	}
}

// Without a cgroup nothing is done and nothing is claimed.
func TestNoCgroup(t *testing.T) {
	var c *Cgroup
	c.Remove()
	_, err := c.Open()
	if c.Kill() == nil || err == nil || c.Populated() || len(c.Members()) > 0 {
		t.Error("there is one")
	}
}

func FuzzCgroupFolders(f *testing.F) {
	f.Add("30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/a/../b\n")
	f.Fuzz(func(t *testing.T, mountinfo, cgroup string) {
		for _, folder := range cgroupFolders(mountinfo, cgroup) {
			if slices.Contains(strings.Split(folder, "/"), "..") && !strings.Contains(mountinfo, "..") {
				t.Errorf("%q leads upwards", folder)
			}
		}
	})
}
