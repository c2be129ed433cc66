package detach

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Handover is what a service does not inherit: the words, folder and environment
// of whoever started it.
type Handover struct {
	Args []string `json:"args"`
	Dir  string   `json:"dir"`
	Env  []string `json:"env"`
}

// Write leaves the handover in a new file of that folder, for its owner alone.
func (h Handover) Write(folder string) (path string, err error) {
	data, err := json.Marshal(h)
	if err != nil {
		return "", fmt.Errorf("cannot write the handover: %w", err)
	}
	f, err := os.CreateTemp(folder, "handover-*.json") // 0600
	if err != nil {
		return "", fmt.Errorf("cannot write the handover: %w", err)
	}
	_, err = f.Write(data)
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return "", fmt.Errorf("cannot write the handover: %w", err)
	}
	return f.Name(), nil
}

// Take reads a handover and removes its file: a second start from it is none.
func Take(path string) (Handover, error) {
	var h Handover
	data, err := os.ReadFile(path)
	if err != nil {
		return h, fmt.Errorf("cannot take the handover: %w", err)
	}
	_ = os.Remove(path)
	if err := json.Unmarshal(data, &h); err != nil {
		return h, fmt.Errorf("cannot take the handover %q: %w", path, err)
	}
	return h, nil
}

// ofManager are the variables by which a service manager speaks to its service.
var ofManager = []string{
	"NOTIFY_SOCKET=", "WATCHDOG_USEC=", "WATCHDOG_PID=", "JOURNAL_STREAM=", "INVOCATION_ID=", "SYSTEMD_EXEC_PID=", "MANAGERPID=",
}

// Environ is the environment of the launch: that of the handover, with what the
// service manager says to the service.
func (h Handover) Environ(service []string) []string {
	var env []string
	for _, list := range []struct {
		all     []string
		manager bool
	}{{h.Env, false}, {service, true}} {
		for _, kv := range list.all {
			if isOfManager(kv) == list.manager {
				env = append(env, kv)
			}
		}
	}
	return env
}

func isOfManager(kv string) bool {
	for _, name := range ofManager {
		if strings.HasPrefix(kv, name) {
			return true
		}
	}
	return false
}
