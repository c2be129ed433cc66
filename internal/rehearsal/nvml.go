package rehearsal

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

//go:embed nvml/*.c nvml/*.h
var nvmlFiles embed.FS

// ErrNoCompiler says that the stand-in library cannot be built here.
var ErrNoCompiler = errors.New("install a C compiler (gcc or clang) and put it on PATH")

// BuildNVML compiles the stand-in libnvidia-ml.so.1 into dir, which is created,
// and returns the folder to put on LD_LIBRARY_PATH. SGLAUNCH_REHEARSAL_NVML
// names the Board that it answers from. Each name in without is a function that
// the library lacks, as an older driver's does.
func BuildNVML(dir string, without ...string) (libdir string, err error) {
	cc, err := findCompiler()
	if err != nil {
		return "", err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("cannot build the stand-in NVML library: %w", err)
	}
	sources, err := unpackNVML(filepath.Join(dir, "src"))
	if err != nil {
		return "", fmt.Errorf("cannot build the stand-in NVML library: %w", err)
	}
	args := []string{"-shared", "-fPIC", "-O1", "-std=gnu11", "-Wall", "-Wextra", "-Wl,-soname,libnvidia-ml.so.1"}
	for _, name := range without {
		args = append(args, "-D"+name+"=absent_"+name)
	}
	args = append(args, "-o", filepath.Join(dir, "libnvidia-ml.so.1"))
	args = append(append(args, sources...), "-lpthread")

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, cc, args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build the stand-in NVML library with %q: %w: %s", cc, err, out)
	}
	return dir, nil
}

func findCompiler() (string, error) {
	for _, name := range []string{"cc", "gcc", "clang"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("cannot build the stand-in NVML library: %w", ErrNoCompiler)
}

func unpackNVML(dir string) (sources []string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	files, err := fs.Glob(nvmlFiles, "nvml/*")
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		content, err := nvmlFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		path := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return nil, err
		}
		if filepath.Ext(path) == ".c" {
			sources = append(sources, path)
		}
	}
	return sources, nil
}
