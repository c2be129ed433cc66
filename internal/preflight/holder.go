package preflight

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"sglaunch/internal/proc"
)

// holder is a process that has something the server needs.
type holder struct {
	pid     int
	command string
}

func (h holder) String() string { return fmt.Sprintf("process %d (%s)", h.pid, h.command) }

// holderOf names a process; false where there is none with that number.
func holderOf(pid int) (holder, bool) {
	p, err := proc.Identify(pid)
	if err != nil {
		return holder{}, false
	}
	return holder{pid, proc.Command(p)}, true
}

// listening is the state of a socket in /proc/net/tcp.
const listening = "0A"

// portHolder finds who listens on a port; listened tells whether anybody does.
// It takes looking at the descriptors of all processes: those of other users
// show only to root, and then the holder is zero.
func portHolder(port int) (h holder, listened bool) {
	sockets := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		for _, inode := range listeners(table, port) {
			sockets["socket:["+inode+"]"] = true
		}
	}
	if len(sockets) == 0 {
		return holder{}, false
	}
	descriptors, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range descriptors {
		target, err := os.Readlink(fd)
		if err != nil || !sockets[target] {
			continue
		}
		pid, _ := strconv.Atoi(strings.Split(fd, "/")[2])
		if h, ok := holderOf(pid); ok {
			return h, true
		}
	}
	return holder{}, true
}

// listeners are the inodes of the sockets that listen on a port.
func listeners(table string, port int) []string {
	f, err := os.Open(table)
	if err != nil {
		return nil
	}
	defer f.Close()
	local := fmt.Sprintf(":%04X", port)
	var inodes []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 9 && strings.HasSuffix(fields[1], local) && fields[3] == listening {
			inodes = append(inodes, fields[9])
		}
	}
	return inodes
}
