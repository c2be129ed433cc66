package preflight

import (
	"context"
	"os"
	"slices"

	"sglaunch/internal/container"
)

// insideOnly are checks of what a server in a container finds in there: from out
// here nothing of it can be seen. Of its ports that holds unless its network is
// the host's.
var insideOnly = []string{"package", "model", "draft_model", "adapters", "gpu_memory", "shared_memory", "limits"}

// inside reports whether a check looks at what only the container sees.
func (l *look) inside(check string) bool {
	r, ok := container.Find(l.Argv)
	if _, beyond := container.Beyond(l.Argv); !ok && !beyond {
		return false
	}
	return slices.Contains(insideOnly, check) || check == "ports" && !r.Host
}

// checkContainer says what cannot work with a server that a container engine
// owns, before it is started.
func checkContainer(_ context.Context, l *look) []Check {
	r, ok := container.Find(l.Argv)
	if !ok {
		return checkBeyond(l)
	}
	client := r.Engine()
	var checks []Check
	if r.Detached {
		checks = append(checks, fail("config_mismatch", "leave --detach out; sglaunch run --detach is what outlives a session",
			"%s run --detach ends at once, and nobody would see the server", client))
	}
	if _, err := os.Lstat(l.abs(r.IDFile)); r.IDFile != "" && err == nil {
		checks = append(checks, fail("config_mismatch", "remove it, or leave --cidfile to sglaunch",
			"%s refuses a --cidfile that exists: %q", client, r.IDFile))
	}
	if l.Patched {
		checks = append(checks, fail("config_mismatch", "run sglaunch inside the container, as its first process",
			"patches do not reach the files of a container"))
	}
	if r.TTY || r.NoProxy {
		checks = append(checks, warn("leave --tty and --sig-proxy=false out",
			"%s passes no signal on with these flags: the server will be killed without a drain", client))
	}
	if r.Name != "" && !r.Remove && !r.Replace {
		checks = append(checks, warn("add --rm",
			"%s gives the name %q once: after a first attempt that has ended each relaunch would be refused", client, r.Name))
	}
	if len(checks) == 0 {
		checks = append(checks, fine("%s owns the server; it is ended by its --cidfile, and the GPUs prove it", client))
	}
	return append(checks, warn("run sglaunch inside the container, as its first process, to have them",
		"from outside a container no processes of the server are seen: a dead rank is known by its words alone"))
}

// checkBeyond is about a container that cannot be ended through its client.
func checkBeyond(l *look) []Check {
	what, ok := container.Beyond(l.Argv)
	if !ok {
		return nil
	}
	return []Check{warn("run sglaunch inside the container, as its first process, or give docker run itself as the command",
		"a server behind %s outlives a client that is killed: nothing here can end it, and a relaunch would meet it", what)}
}
