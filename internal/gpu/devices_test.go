package gpu

import (
	"fmt"
	"strings"
	"testing"

	"sglaunch/internal/sglangcmd"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// machine is n GPUs; GPU-a0, GPU-b1, …
func machine(n int) []GPU {
	var all []GPU
	for i := range n {
		all = append(all, GPU{Index: i, UUID: fmt.Sprintf("GPU-%c%d", 'a'+i, i), Name: "B200"})
	}
	return all
}

func uuids(gpus []GPU) string {
	var words []string
	for _, g := range gpus {
		words = append(words, strings.TrimPrefix(g.UUID, "GPU-"))
	}
	return strings.Join(words, " ")
}

func TestDevices(t *testing.T) {
	for _, c := range []struct {
		flags, visible string
		want           string
		note           string // a part of it
	}{
		{"--tp 8", "-", "a0 b1 c2 d3 e4 f5 g6 h7", ""},
		{"--tp 2", "-", "a0 b1", ""},
		{"", "-", "a0", ""},
		{"--tp 2 --base-gpu-id 4", "-", "e4 f5", ""},
		{"--tp 3 --gpu-id-step 2 --base-gpu-id 1", "-", "b1 d3 f5", ""},
		{"--tp 2 --pp 2", "-", "a0 b1 c2 d3", ""},
		{"--tp 2 --dp 2", "-", "a0 b1 c2 d3", ""},
		{"--tp 4 --dp 4 --enable-dp-attention", "-", "a0 b1 c2 d3", ""},
		{"--tp 16 --nnodes 2 --node-rank 1", "-", "a0 b1 c2 d3 e4 f5 g6 h7", ""},
		{"--tp 2", "6,7", "g6 h7", ""},
		{"--tp 2", " 7 , 3 ", "h7 d3", ""},
		{"--tp 2", "GPU-c,GPU-a0", "c2 a0", ""},
		{"--tp 2", "0,99,1", "a0", "ignores the rest"},
		{"--tp 1", "", "", "hides"},
		{"--tp 1", "2,-1,3", "c2", ""},
		{"--tp 1", "GPU-zz", "", "cannot find"},
		{"--tp 16", "-", "a0 b1 c2 d3 e4 f5 g6 h7", "wants 16 GPUs"},
		{"--tp 4", "1,2", "b1 c2", "wants 4 GPUs"},
		{"--tp 1 --base-gpu-id -5", "-", "a0 b1 c2 d3 e4 f5 g6 h7", "from -5"},
		{"--tp 99999999999999999999", "-", "a0", ""},
		{"--tp 4000000000 --pp 4000000000", "-", "a0 b1 c2 d3 e4 f5 g6 h7", "wants"},
	} {
		var env []string
		if c.visible != "-" {
			env = []string{"CUDA_VISIBLE_DEVICES=0,1,2", "CUDA_VISIBLE_DEVICES=" + c.visible}
		}
		argv := append([]string{"python", "-m", "sglang.launch_server"}, strings.Fields(c.flags)...)
		picked, note := Devices(sglangcmd.Parse(argv, env, ""), machine(8))
		if uuids(picked) != c.want || !strings.Contains(note, c.note) || c.note == "" && note != "" {
			t.Errorf("%s on %s: got %s (%s), want %s (%s)", c.flags, c.visible, uuids(picked), note, c.want, c.note)
		}
	}
	if picked, note := Devices(sglangcmd.Parse([]string{"sleep", "1"}, []string{"CUDA_VISIBLE_DEVICES=3"}, ""), machine(8)); uuids(picked) != "d3" || note != "" {
		t.Errorf("a command that is no server uses %s (%s)", uuids(picked), note)
	}
	if picked, _ := Devices(sglangcmd.Parse([]string{"sglang", "serve", "/m"}, nil, ""), nil); len(picked) != 0 {
		t.Errorf("without GPUs it uses %v", picked)
	}
}

func TestDevicesWithMIGAndMixedGPUs(t *testing.T) {
	all := machine(2)
	all[0].Instances = []GPU{{UUID: "MIG-1", Parent: "GPU-a0"}, {UUID: "MIG-2", Parent: "GPU-a0"}}
	argv := []string{"sglang", "serve", "/m"}
	for visible, want := range map[string]string{"MIG-2": "MIG-2", "1": "MIG-2", "2": "b1", "MIG-": ""} {
		if picked, _ := Devices(sglangcmd.Parse(argv, []string{"CUDA_VISIBLE_DEVICES=" + visible}, ""), all); uuids(picked) != want {
			t.Errorf("%s: got %s, want %s", visible, uuids(picked), want)
		}
	}
	all = machine(2)
	all[1].Name = "RTX 4090"
	if _, note := Devices(sglangcmd.Parse(argv, nil, ""), all); !strings.Contains(note, "PCI_BUS_ID") {
		t.Errorf("mixed GPUs: note %q", note)
	}
	if _, note := Devices(sglangcmd.Parse(argv, []string{"CUDA_DEVICE_ORDER=PCI_BUS_ID"}, ""), all); note != "" {
		t.Errorf("mixed GPUs in PCI order: note %q", note)
	}
}

func TestSelect(t *testing.T) {
	all := machine(3)
	picked, err := Select([]string{"GPU-c2", "GPU-a"}, all)
	if err != nil || uuids(picked) != "c2 a0" {
		t.Errorf("got %s, %v", uuids(picked), err)
	}
	for _, bad := range []string{"GPU-", "GPU-x", ""} {
		if _, err := Select([]string{bad}, all); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestReadingInJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Sample{GPUs: []GPU{{
			Index: rapid.IntRange(0, 63).Draw(t, "index"),
			Util:  readings.Draw(t, "util"), PowerMW: readings.Draw(t, "power"), ECCCorrected: readings.Draw(t, "ecc"),
			Remapped:  Remapped{Corrected: readings.Draw(t, "rows")},
			Processes: rapid.SampledFrom([][]Process{nil, {}, {{PID: 1, Bytes: Read(0)}}, {{PID: 2}}}).Draw(t, "processes"),
		}}}
		var back Sample
		roundTrip(t, s, &back)
		if diff := cmp.Diff(s, back); diff != "" {
			t.Fatal(diff)
		}
	})
}

var readings = rapid.Custom(func(t *rapid.T) Reading {
	if rapid.Bool().Draw(t, "known") {
		return Read(rapid.Int64().Draw(t, "value"))
	}
	return Reading{}
})
