// Stage makes a stand-in SGLang for the check on a real systemd: a launch.toml,
// and the scenario as an environment file of a unit.
//
//	go run ./.ci/systemd DIR SCENARIO SPEED
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"sglaunch/internal/rehearsal"
)

func main() {
	if err := stage(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "stage:", err)
		os.Exit(1)
	}
}

func stage(args []string) error {
	if len(args) != 3 {
		return errors.New("usage: stage DIR SCENARIO SPEED")
	}
	scenario, err := rehearsal.Find(args[1])
	if err != nil {
		return err
	}
	speed, err := strconv.ParseFloat(args[2], 64)
	if err != nil {
		return err
	}
	s, err := rehearsal.Build(filepath.Join(args[0], "stage"), rehearsal.Options{Version: scenario.Version, GPUs: 2, Speed: speed, Shards: 20})
	if err != nil {
		return err
	}
	if s.Lib, err = rehearsal.BuildNVML(filepath.Join(args[0], "nvml")); err != nil {
		return err
	}
	env := strings.Builder{}
	for _, kv := range s.Env(scenario) {
		name, value, _ := strings.Cut(kv, "=")
		if name != "PATH" && name != "HOME" {
			fmt.Fprintf(&env, "%s='%s'\n", name, value)
		}
	}
	if err := os.WriteFile(filepath.Join(args[0], "env"), []byte(env.String()), 0o600); err != nil {
		return err
	}
	var command strings.Builder
	for _, w := range s.Command(s.Args(2, 30000)...) {
		fmt.Fprintf(&command, "%q, ", w)
	}
	toml := fmt.Sprintf(`[server]
name = %q
command = [%s]
[[patch]]
use = "flashinfer-cutlass-autotune"
[ready]
output_check = "off"
[stop]
drain = "10s"
grace = "3s"
release = "10s"
[phases.limits]
loading_weights = { quiet = "10s" }
[relaunch]
attempts = 2
backoff = { initial = "200ms", max = "1s" }
`, filepath.Base(args[0]), strings.TrimSuffix(command.String(), ", "))
	return os.WriteFile(filepath.Join(args[0], "launch.toml"), []byte(toml), 0o600)
}
