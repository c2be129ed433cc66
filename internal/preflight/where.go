package preflight

import "sglaunch/internal/sglangcmd"

// ModelDir is the folder in which the weights of the command's model lie now:
// its path, or its snapshot in the Hub's cache. It is "" where the command
// tells no model or nothing of it is there. It reads a few names and may wait
// for a slow disk.
func ModelDir(cmd sglangcmd.Command) string {
	l := look{cmd: cmd, root: "/"}
	return l.modelDir(cmd.Server().Model)
}
