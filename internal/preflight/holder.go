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

// listening is the state of a socket in /proc/net/tcp.
const listening = "0A"

// portHolder names who listens on a port; listened tells whether anybody does.
// It takes looking at the descriptors of all processes: those of other users
// show only to root, and then nobody is named.
func portHolder(port int) (who string, listened bool) {
	sockets := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		for _, inode := range listeners(table, port) {
			sockets["socket:["+inode+"]"] = true
		}
	}
	if len(sockets) == 0 {
		return "", false
	}
	descriptors, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range descriptors {
		target, err := os.Readlink(fd)
		if err != nil || !sockets[target] {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(fd, "/")[2]); err == nil {
			return proc.Who(pid), true
		}
	}
	return "", true
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
