package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"sglaunch/phases"
)

// requests prints what a server with --log-requests prints while nobody holds it
// up: a start, and between its steps some 30 MB of requests of all sizes.
const requests = `
import os
def say(text):
    data = text.encode()
    while data: data = data[os.write(1, data):]
at = "[2026-02-19 05:48:40] "
say(at + "server_args=ServerArgs(model_path='/models/m', tp_size=1)\n")
say(at + "Load weight begin. avail mem=138.20 GB\n")
for shard in 1, 2, 3:
    for n in range(1000):
        size = (300, 8000)[n % 2] if n % 100 else (70_000, 1_000_000)[n // 100 % 2]
        say(at + "Receive: obj=GenerateReqInput(text='" + "what does CUDA out of memory mean? " * (size // 35) + "', stream=True)\n")
    say(f"Loading safetensors checkpoint shards: {33 * shard:3d}% Completed | {shard}/4 [00:01<00:03,  1.00s/it]\n")
say(at + "Load weight end. elapsed=4.10 s, type=M, avail mem=57.26 GB, mem usage=80.94 GB.\n")
say(at + "Capture cuda graph begin. This can take up to several minutes. avail mem=24.10 GB\n")
`

// Long lines, many megabytes, as fast as a terminal carries them: no byte is
// lost, and what is learnt from the output is learnt at its place.
func TestLongLines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := startLaunch(t, dir, nil, "run", "--relaunch.attempts=1", "--log.rotate.size=20MiB", "--", "python3", "-c", requests)
	if code := l.wait(); code != 10 { // an SGLang server that ends unasked
		t.Errorf("exit code %d\n%s", code, l.stderr.bytes())
	}
	attempt := one(t, filepath.Join(dir, "state", "launches", "*", "attempts", "1"))
	log := readFile(t, one(t, filepath.Join(attempt, "server.log.0*")))
	log = append(log, readFile(t, filepath.Join(attempt, "server.log"))...)
	if n := bytes.Count(log, []byte("', stream=True)\n")); n != 3000 {
		t.Errorf("%d requests are in the log", n)
	}
	if !bytes.Equal(l.stdout.bytes(), log) {
		t.Errorf("standard output has %d bytes, the log has others, %d", len(l.stdout.bytes()), len(log))
	}
	shards := 0
	for _, o := range observations(t, filepath.Join(attempt, "../../journal.jsonl")) {
		line, _, _ := bytes.Cut(log[o.Offset:], []byte("\n"))
		if n := bytes.Count(log[:o.Offset], []byte("\n")) + 1; n != o.Line || !bytes.Contains(line, []byte(o.Text)) {
			t.Errorf("%s is seen on line %d at %d: %q; there, on line %d, is %.80q", o.Rule, o.Line, o.Offset, o.Text, n, line)
		}
		if o.Kind == phases.KindFault {
			t.Errorf("a request is taken for a fault: %+v", o)
		}
		if o.Unit == "shards" {
			shards++
		}
	}
	if shards != 3 {
		t.Errorf("%d shards are seen", shards)
	}
}

// one is the only file of a pattern.
func one(t *testing.T, pattern string) string {
	t.Helper()
	all, err := filepath.Glob(pattern)
	if err != nil || len(all) != 1 {
		t.Fatalf("%s: %v %v", pattern, all, err)
	}
	return all[0]
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// observations are what a journal holds of the output.
func observations(t *testing.T, journal string) (all []phases.Observation) {
	t.Helper()
	for line := range bytes.Lines(readFile(t, journal)) {
		var entry struct {
			Step struct {
				Event string
				Body  phases.Observation
			}
		}
		if json.Unmarshal(line, &entry) == nil && entry.Step.Event == "seen" {
			all = append(all, entry.Step.Body)
		}
	}
	return all
}
