package rehearsal

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// process is one entry of /proc.
type process struct {
	pid, parent, group int
	state              byte
	title              string
}

func (q process) env(name string) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", q.pid))
	for _, v := range strings.Split(string(b), "\x00") {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

var statLine = regexp.MustCompile(`(?s)^\d+ \(.*\) (\S) (\d+) (\d+)`)

func processes(t *testing.T) []process {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var all []process
	for _, dir := range dirs {
		stat, err := os.ReadFile(dir + "/stat")
		m := statLine.FindSubmatch(stat)
		if err != nil || m == nil {
			continue // gone meanwhile
		}
		q := process{state: m[1][0]}
		q.pid, _ = strconv.Atoi(filepath.Base(dir))
		q.parent, _ = strconv.Atoi(string(m[2]))
		q.group, _ = strconv.Atoi(string(m[3]))
		title, _ := os.ReadFile(dir + "/cmdline")
		q.title = strings.TrimRight(strings.ReplaceAll(string(title), "\x00", " "), " ")
		all = append(all, q)
	}
	return all
}

// groupAlive tells whether a group has a process that is more than a zombie.
// Orphans end as zombies of this process, and are reaped on the way.
func groupAlive(group int) bool {
	for {
		if pid, err := syscall.Wait4(-group, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
			break
		}
	}
	return syscall.Kill(-group, 0) == nil
}

// tree lists main and everything below it.
func (p *server) tree() []process {
	all, found := processes(p.t), []process{}
	members := map[int]bool{p.group: true}
	for range all { // parents may come after their children
		for _, q := range all {
			members[q.pid] = members[q.pid] || members[q.parent]
		}
	}
	for _, q := range all {
		if members[q.pid] {
			found = append(found, q)
		}
	}
	return found
}

func (p *server) titled(prefix string) []process {
	var found []process
	for _, q := range p.tree() {
		if strings.HasPrefix(q.title, prefix) {
			found = append(found, q)
		}
	}
	return found
}
