package proc

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Who names a process for people who have to do something about it: pid,
// command, how long it has lived and, where it can be known, its container. It
// says so where there is no such process.
func Who(pid int) string {
	p, err := Identify(pid)
	if err != nil {
		return fmt.Sprintf("process %d (of which nothing is known here)", pid)
	}
	parts := []string{Command(p)}
	if age, err := Age(p.ID); err == nil {
		parts = append(parts, "for "+shortAge(age))
	}
	if id := Container(pid); id != "" {
		parts = append(parts, "container "+id)
	}
	return fmt.Sprintf("process %d (%s)", pid, strings.Join(parts, ", "))
}

// Age is how long ago a process began, suspended time included.
func Age(id ID) (time.Duration, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0, fmt.Errorf("cannot tell the age of process %d: %w", id.PID, err)
	}
	return max(0, time.Duration(now.Nano())-time.Duration(id.Start)*TickLength), nil
}

// shortAge is an age as a person would say it: the two largest units.
func shortAge(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	case d >= time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return d.Round(time.Second).String()
}

// containerID is the name that Docker, containerd, CRI-O and Podman give the
// cgroup of a container; people know it by its first twelve digits.
var containerID = regexp.MustCompile(`(?:^|[/:-])([0-9a-f]{64})(?:\.scope)?(?:/|$)`)

// Container is the short id of the container that a process lives in, as its
// cgroup tells; "" = in none, or in ours, from where no cgroup above shows.
func Container(pid int) string {
	text, err := fileOf(pid, "cgroup", 4<<10)
	if err != nil {
		return ""
	}
	return containerOf(string(text))
}

func containerOf(cgroups string) string {
	for line := range strings.Lines(cgroups) {
		if m := containerID.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			return m[1][:12]
		}
	}
	return ""
}

// HostPIDs reports whether pids here are those of the host. Then the driver's
// list of processes is complete and its pids are ours; in a container it shows
// no neighbour, or numbers that mean another process here.
func HostPIDs() bool {
	const inode = "pid:[4026531836]" // PROC_PID_INIT_INO of the kernel
	name, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && name == inode
}
