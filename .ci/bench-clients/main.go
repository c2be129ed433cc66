// Command bench-clients runs the benchmark clients of real releases, by the
// command lines that a night uses, against a server that answers as one does,
// and reads what they write as a night reads it. The releases' own files run;
// their GPU stack is not there (sitecustomize.py). It prints a table and fails
// where a result is not what the server has seen.
//
//	go run ./.ci/bench-clients                 one SGLang release of each layout
//	go run ./.ci/bench-clients -kind vllm 0.19.0   releases of one's own choice (a wheel of vLLM has 0.5 GB)
package main

import (
	"archive/zip"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

//go:embed sitecustomize.py
var standIns []byte

// layouts are releases whose clients differ: without server_info, bench_one_batch_server
// before and after it wrote all that it printed, with shared data sets, after the
// move to sglang.benchmark, and a new one.
var layouts = []string{"0.4.6.post5", "0.5.4", "0.5.6", "0.5.7", "0.5.10", "0.5.18", "0.5.23"}

// needs are the packages that the clients cannot do without.
var needs = []string{"numpy", "aiohttp", "requests", "tqdm", "msgspec", "orjson", "pybase64", "pillow", "pydantic", "tabulate", "regex"}

func main() {
	kind := flag.String("kind", "sglang", "sglang | vllm")
	flag.Parse()
	versions := flag.Args()
	if len(versions) == 0 {
		versions = layouts
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *kind, versions); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kind string, versions []string) error {
	dir, err := os.MkdirTemp("", "bench-clients-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := environment(ctx, dir); err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "release\tclient\tserver\tresult")
	var failed []error
	for _, version := range versions {
		release, err := unpacked(ctx, kind, version, dir)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		for _, c := range casesOf(kind, version) {
			result, err := c.try(ctx, dir, release)
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", version, c.client, c.name, result)
			if err != nil {
				failed = append(failed, fmt.Errorf("%s, %s, %s: %w", version, c.client, c.name, err))
			}
		}
		if err := os.RemoveAll(release); err != nil {
			return err
		}
	}
	return errors.Join(append(failed, table.Flush())...)
}

// environment makes one Python for all releases.
func environment(ctx context.Context, dir string) error {
	for _, argv := range [][]string{
		{"python3", "-m", "venv", dir + "/venv"},
		append([]string{dir + "/venv/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"}, needs...),
	} {
		if out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("cannot make an environment: %w: %s", err, out)
		}
	}
	if err := os.MkdirAll(dir+"/standins", 0o755); err != nil {
		return err
	}
	return os.WriteFile(dir+"/standins/sitecustomize.py", standIns, 0o644)
}

// unpacked is the folder of a release with its clients alone.
func unpacked(ctx context.Context, kind, version, dir string) (string, error) {
	wheels := filepath.Join(dir, "wheels")
	out, err := exec.CommandContext(ctx, "python3", "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", wheels,
		"--python-version", "3.11", "--platform", "manylinux_2_35_x86_64", "--platform", "manylinux_2_34_x86_64", "--platform", "manylinux_2_31_x86_64", "--platform", "manylinux1_x86_64", "--platform", "any",
		kind+"=="+version).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("cannot download %s %s: %w: %s", kind, version, err, out)
	}
	found, _ := filepath.Glob(filepath.Join(wheels, kind+"-*.whl")) // the pattern is well-formed
	if len(found) != 1 {
		return "", fmt.Errorf("pip brought %d wheels of %s %s", len(found), kind, version)
	}
	defer os.Remove(found[0])
	release := filepath.Join(dir, "release")
	archive, err := zip.OpenReader(found[0])
	if err != nil {
		return "", err
	}
	defer archive.Close()
	for _, f := range archive.File {
		if strings.HasSuffix(f.Name, ".py") && strings.Contains(f.Name, "bench") {
			if err := extract(f, release); err != nil {
				return "", err
			}
		}
	}
	return release, nil
}

func extract(f *zip.File, root string) error {
	in, err := f.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	path := filepath.Join(root, filepath.FromSlash(f.Name))
	if !filepath.IsLocal(f.Name) {
		return fmt.Errorf("the wheel holds %q", f.Name)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}
