package proc

import (
	"bufio"
	"iter"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// hierarchy is a tree of control groups: version 2 has one, version 1 one for
// each controller.
type hierarchy struct{ controller string } // "" is version 2

var (
	unified      = hierarchy{}
	memoryGroups = hierarchy{"memory"}
)

// place is where a process stands in a hierarchy, and where (a part of) that is
// mounted.
type place struct{ own, point, below string }

func (p place) folder() string { return filepath.Join(p.point, p.below) }

// upwards goes from the process's group to the topmost that is mounted: each
// group's name in the hierarchy, and its folder.
func (p place) upwards() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for name, below := p.own, p.below; yield(name, filepath.Join(p.point, below)) && below != "."; {
			name, below = path.Dir(name), filepath.Dir(below)
		}
	}
}

// places says where the group of a process may be found, from its
// /proc/PID/cgroup and our mountinfo.
func (h hierarchy) places(mountinfo, cgroup string) (all []place) {
	own := h.own(cgroup)
	if !strings.HasPrefix(own, "/") || strings.Contains(own+"/", "/../") {
		return nil // none, or outside our namespace
	}
	lines := bufio.NewScanner(strings.NewReader(mountinfo))
	for lines.Scan() {
		before, after, _ := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(before) // id, parent, device, root, mount point, ...
		if len(fields) < 5 || !h.is(after) {
			continue
		}
		root, point := unescapeMount(fields[3]), unescapeMount(fields[4])
		if below, err := filepath.Rel(root, own); err == nil && filepath.IsLocal(below) {
			all = append(all, place{own, point, below})
		}
	}
	return all
}

// own is the path of a process in the hierarchy, from lines like
// "4:cpu,memory:/path" and, of version 2, "0::/path".
func (h hierarchy) own(cgroup string) (path string) {
	for line := range strings.Lines(cgroup) {
		f := strings.SplitN(strings.TrimRight(line, "\n"), ":", 3)
		if len(f) == 3 && slices.Contains(strings.Split(f[1], ","), h.controller) && (h != unified || f[0] == "0") {
			path = f[2]
		}
	}
	return path
}

// is reports whether a mount, "type source options", is of the hierarchy.
func (h hierarchy) is(mount string) bool {
	if h == unified {
		return strings.HasPrefix(mount, "cgroup2 ")
	}
	f := strings.Fields(mount)
	return len(f) == 3 && f[0] == "cgroup" && slices.Contains(strings.Split(f[2], ","), h.controller)
}

// unescapeMount undoes what mountinfo does to blanks in paths.
var unescapeMount = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace
