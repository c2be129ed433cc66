package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"sglaunch/internal/serve"
	"sglaunch/internal/shim/wire"
	"sglaunch/supervisor/journal"
	"sglaunch/supervisor/machine"
)

// What changes in a launch whose server goes on: its configuration, and the
// program that supervises it.

var errNothingToReload = errors.New("this launch was started without a launch.toml; its flags belong to the command line")

// reload reads the configuration again and goes on by it, as far as that is
// possible with the server that runs. What it returns says which keys have
// changed and from when each counts. It may be called from any goroutine.
func (h *hands) reload(by string) (map[string]any, error) {
	if h.Reload == nil {
		return nil, errNothingToReload
	}
	h.reloading.Lock()
	defer h.reloading.Unlock()
	r, err := h.Reload()
	if err != nil {
		return nil, fmt.Errorf("all stays as it was: %w", err)
	}
	h.live.Store(&r.Settings)
	h.gpus.Pace(h.watch.pace())
	h.reader.UseRules(r.Rules)
	h.front.hooks.Change(r.Hooks)
	h.order(wire.Message{Type: wire.Ledger, Text: r.Remember})
	h.loop.Post(0, machine.Reload{By: by, Options: r.Options, Text: r.String()})
	changed := map[string]any{}
	for when, keys := range map[string][]string{"now": r.Now, "next_attempt": r.NextAttempt, "next_launch": r.NextLaunch} {
		if len(keys) > 0 {
			changed[when] = keys
		}
	}
	return changed, nil
}

// hangup is a SIGHUP to a service: it reads its configuration again.
func (h *hands) hangup() {
	if _, err := h.reload("SIGHUP"); err != nil {
		h.order(wire.Message{Type: wire.Print, Text: "sglaunch: cannot reload on SIGHUP: " + err.Error()})
	}
}

// String says what has changed, in one line.
func (r Reloaded) String() string {
	var parts []string
	for _, p := range []struct {
		keys []string
		when string
	}{{r.Now, "from now on"}, {r.NextAttempt, "with the next attempt"}, {r.NextLaunch, "only with a new launch (stop it and run it again)"}} {
		if len(p.keys) > 0 {
			parts = append(parts, strings.Join(p.keys, ", ")+" "+p.when)
		}
	}
	if len(parts) == 0 {
		return "reloaded: nothing has changed"
	}
	return "reloaded: " + strings.Join(parts, "; ")
}

// handOver lets another program go on in this one's place, if the two speak the
// same. The server does not notice; what is under way is asked for again.
func (h *hands) handOver(r serve.Request) error {
	switch {
	case r.Protocol != wire.Version:
		return fmt.Errorf("the launch's shim speaks protocol %d and the new program %d; stop the launch and run it anew", wire.Version, r.Protocol)
	case r.Journal < journal.Version:
		return fmt.Errorf("the launch's journal is of version %d and the new program reads %d; it is older", journal.Version, r.Journal)
	}
	info, err := os.Stat(r.Program)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no program %q", r.Program)
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("%q is no program", r.Program)
	}
	select {
	case h.leave <- r.Program:
		return nil
	default:
		return errors.New("an upgrade is under way")
	}
}
