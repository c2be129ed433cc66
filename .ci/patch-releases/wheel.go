package main

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"sglaunch/patch"
)

// fetch downloads a wheel, unless the folder has it. A release may be built for
// one Python only; its sources are what counts here, so any will do.
func fetch(ctx context.Context, version, dir string) (string, error) {
	for _, choice := range [][]string{nil, {"--python-version", "3.11"}, {"--python-version", "3.12"}, {"--python-version", "3.10"}} {
		if found := wheelOf(version, dir); found != "" {
			return found, nil
		}
		args := []string{"-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", dir, "sglang==" + version}
		if choice != nil {
			args = append(args, append(choice, "--platform", "manylinux_2_34_x86_64", "--platform", "manylinux2014_x86_64", "--platform", "any")...)
		}
		out, err := exec.CommandContext(ctx, "python3", args...).CombinedOutput()
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if err != nil && choice != nil && choice[1] == "3.10" {
			return "", fmt.Errorf("cannot download: %w: %s", err, strings.TrimSpace(string(out)))
		}
	}
	if found := wheelOf(version, dir); found != "" {
		return found, nil
	}
	return "", errors.New("pip brought no wheel")
}

func wheelOf(version, dir string) string {
	found, _ := filepath.Glob(filepath.Join(dir, "sglang-"+version+"-*.whl")) // the pattern is well-formed
	if len(found) == 0 {
		return ""
	}
	return found[0]
}

// install unpacks a wheel into a bare environment. Nothing of it is imported,
// so what it depends on need not be there.
func install(ctx context.Context, wheel, root string) (patch.Interpreter, string, error) {
	if out, err := exec.CommandContext(ctx, "python3", "-m", "venv", "--without-pip", root).CombinedOutput(); err != nil {
		return patch.Interpreter{}, "", fmt.Errorf("cannot make an environment: %w: %s", err, out)
	}
	in := patch.Interpreter{Python: filepath.Join(root, "bin", "python"), Dir: filepath.Dir(root)}
	out, err := exec.CommandContext(ctx, in.Python, "-c", "import json, sysconfig; print(json.dumps(sysconfig.get_path('purelib')))").Output()
	if err != nil {
		return patch.Interpreter{}, "", fmt.Errorf("cannot ask the environment: %w", err)
	}
	var site string
	if err := json.Unmarshal(out, &site); err != nil {
		return patch.Interpreter{}, "", err
	}
	return in, site, unpack(wheel, site)
}

func unpack(wheel, site string) error {
	archive, err := zip.OpenReader(wheel)
	if err != nil {
		return err
	}
	defer archive.Close()
	for _, f := range archive.File {
		if f.FileInfo().IsDir() {
			continue
		}
		if !filepath.IsLocal(f.Name) {
			return fmt.Errorf("the wheel holds the path %q", f.Name)
		}
		if err := unpackOne(f, filepath.Join(site, f.Name)); err != nil {
			return err
		}
	}
	return nil
}

func unpackOne(f *zip.File, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	in, err := f.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

// listing describes every file and folder: mode, time, links and content.
func listing(root string) (map[string]string, error) {
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := fmt.Sprintf("%s %d", info.Mode(), info.ModTime().UnixNano())
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %x", sha256.Sum256(content))
		}
		all[path] = text
		return nil
	})
	return all, err
}

func differences(a, b map[string]string) []string {
	var names []string
	for path, text := range a {
		if b[path] != text {
			names = append(names, path)
		}
	}
	for path := range b {
		if _, ok := a[path]; !ok {
			names = append(names, path)
		}
	}
	slices.Sort(names)
	return names
}
