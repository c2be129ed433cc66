package detach

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// systemUsers end here; the IPC objects of those above are removed at the last
// logout.
const systemUsers = 999

// Traps says what the last logout would do to a launch that was started this
// way, each in a sentence with what to do about it.
func (w Way) Traps() []string {
	h := w.host
	if h.UID == 0 || !h.exists("/run/systemd/users") { // nobody looks after logouts
		return nil
	}
	if h.lingers() {
		return nil // the user never leaves, as the service manager sees it
	}
	logind := h.logind()
	var traps []string
	cure := fmt.Sprintf("; \"loginctl enable-linger %s\" keeps it", h.User)
	switch {
	case w.Kind == User:
		traps = append(traps, "your last logout ends your services, and this launch with them"+cure)
	case logind["KillUserProcesses"] == "yes":
		traps = append(traps, "KillUserProcesses=yes in logind.conf: a logout ends this launch"+cure)
	}
	if h.UID > systemUsers && logind["RemoveIPC"] != "no" {
		traps = append(traps, "RemoveIPC=yes in logind.conf: your last logout empties /dev/shm of your files, under a server that uses it"+cure)
	}
	return traps
}

// lingers reports whether the user's services live without a session.
func (h Host) lingers() bool { return h.exists("/var/lib/systemd/linger/" + h.User) }

func (h Host) exists(path string) bool {
	_, err := os.Stat(filepath.Join(h.Root, path))
	return err == nil
}

// logind reads the settings of logind.conf and its drop-ins; what is not said
// has its default, as systemd 252 has it.
func (h Host) logind() map[string]string {
	settings := map[string]string{"KillUserProcesses": "no", "RemoveIPC": "yes"}
	files := []string{filepath.Join(h.Root, "/etc/systemd/logind.conf")}
	var dropIns []string
	for _, folder := range []string{"/usr/lib/systemd", "/run/systemd", "/etc/systemd"} {
		found, _ := filepath.Glob(filepath.Join(h.Root, folder, "logind.conf.d", "*.conf")) // the pattern is sound
		dropIns = append(dropIns, found...)
	}
	slices.SortStableFunc(dropIns, func(a, b string) int { return strings.Compare(filepath.Base(a), filepath.Base(b)) })
	for _, path := range append(files, dropIns...) {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		lines := bufio.NewScanner(bytes.NewReader(data))
		for lines.Scan() {
			name, value, ok := strings.Cut(strings.TrimSpace(lines.Text()), "=")
			if _, known := settings[strings.TrimSpace(name)]; ok && known {
				settings[strings.TrimSpace(name)] = yesNo(strings.TrimSpace(value))
			}
		}
	}
	return settings
}

// yesNo reads a truth as systemd does.
func yesNo(value string) string {
	switch strings.ToLower(value) {
	case "yes", "true", "on", "1", "y", "t":
		return "yes"
	}
	return "no"
}
