package proc

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// listening is the state of a socket in /proc/net/tcp.
const listening = "0A"

// Listeners are the processes that listen on a TCP port of our network namespace,
// as far as they show; listened tells whether anybody does. It takes looking at
// the descriptors of all processes: those of other users show only to root.
func Listeners(port int) (pids []int, listened bool) {
	sockets := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		for _, inode := range listeningInodes(table, port) {
			sockets["socket:["+inode+"]"] = true
		}
	}
	if len(sockets) == 0 {
		return nil, false
	}
	descriptors, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range descriptors {
		target, err := os.Readlink(fd)
		if err != nil || !sockets[target] {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(fd, "/")[2]); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, true
}

func listeningInodes(table string, port int) (inodes []string) {
	f, err := os.Open(table)
	if err != nil {
		return nil
	}
	defer f.Close()
	local := fmt.Sprintf(":%04X", port)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 9 && strings.HasSuffix(fields[1], local) && fields[3] == listening {
			inodes = append(inodes, fields[9])
		}
	}
	return inodes
}
