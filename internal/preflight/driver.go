package preflight

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// moduleVersion finds the version in /proc/driver/nvidia/version.
var moduleVersion = regexp.MustCompile(`Kernel Module.*?\s(\d+\.\d+(?:\.\d+)?)\s`)

// libraryDirs are where the driver's libraries are installed.
var libraryDirs = []string{
	"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib",
	"/usr/lib/wsl/lib", "/usr/local/nvidia/lib64", "/run/opengl-driver/lib",
}

// checkDriver compares the loaded kernel module with the libraries on disk. An
// unattended update replaces the libraries under a running module: what runs
// goes on, what starts then fails.
func checkDriver(_ context.Context, l *look) []Check {
	text, err := os.ReadFile(l.path("/proc/driver/nvidia/version"))
	if err != nil || !l.wantsNVIDIA() {
		return nil
	}
	m := moduleVersion.FindStringSubmatch(string(text))
	if m == nil {
		return nil
	}
	module := m[1]
	installed := l.libraryVersions()
	switch {
	case len(installed) == 0:
		return []Check{fine("module %s; the library's version is not known", module)}
	case !slices.Contains(installed, module):
		return []Check{fail("driver_mismatch", "reboot, or unload and load the nvidia modules",
			"the loaded module is %s, the installed library %s", module, strings.Join(installed, ", "))}
	case len(installed) > 1:
		return []Check{warn("remove the other one", "several versions of the library are installed: %s; the module is %s",
			strings.Join(installed, ", "), module)}
	}
	return []Check{fine("module and library are %s", module)}
}

// libraryVersions are the versions of libnvidia-ml that a program can find.
func (l *look) libraryVersions() []string {
	dirs := libraryDirs
	for _, dir := range filepath.SplitList(l.getenv("LD_LIBRARY_PATH")) {
		if filepath.IsAbs(dir) {
			dirs = append(slices.Clip(dirs), dir)
		}
	}
	found := map[string]bool{}
	for _, dir := range dirs {
		target, err := filepath.EvalSymlinks(l.path(dir, "libnvidia-ml.so.1"))
		if err != nil {
			continue
		}
		if _, version, ok := strings.Cut(filepath.Base(target), ".so."); ok && version != "1" {
			found[version] = true
		}
	}
	return sorted(found)
}
