package tune

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sglaunch/internal/config"
)

// head is the least that every study needs.
const head = `name = "night"
base = "launch.toml"
deadline = "06:30"
`

const tail = `
[[load]]
name = "chat"
bench = "sglang.bench_serving"
input = 1024
output = 256
concurrency = [1, 8, 32]
`

func read(t *testing.T, text string) (Study, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tune.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Read(path)
}

func names(trials []Trial) []string {
	var all []string
	for _, t := range trials {
		all = append(all, t.Name)
	}
	return all
}

func TestReadAndExpand(t *testing.T) {
	tests := []struct {
		name string
		text string
		base map[string]Value
		want []string
	}{
		{"one at a time, the least memory first, patches last", `
[axis."--mem-fraction-static"]
values = [0.92, 0.85, 0.88]
[axis.patches]
values = ["", "flashinfer-cutlass-autotune"]
[axis."$SGLANG_X"]
values = ["1"]
`, map[string]Value{"--mem-fraction-static": TextValue("0.88"), "patches": TextValue(""), "$SGLANG_X": {Kind: Absent}}, []string{
			"baseline", "--mem-fraction-static 0.85", "$SGLANG_X=1", "--mem-fraction-static 0.92", "patches=flashinfer-cutlass-autotune",
		}},
		{"a product without what is excluded", `
search = "product"
[axis."--a"]
values = [1, 2]
[axis."--b"]
values = [true, false]
[[exclude]]
set = { "--a" = 2, "--b" = true }
`, map[string]Value{"--a": TextValue("1"), "--b": {Kind: Absent}}, []string{
			"baseline", "--b", "--a 2",
		}},
		{"a base that cannot be read: what may take more comes last, in its order", `
[axis."--z"]
values = [10, 2]
[axis."--mem-fraction-static"]
values = [0.9, 0.85]
[axis."--cpu-offload-gb"]
values = [4, 16]
`, nil, []string{"baseline", "--z 2", "--z 10", "--cpu-offload-gb 16", "--cpu-offload-gb 4", "--mem-fraction-static 0.85", "--mem-fraction-static 0.9"}},
		{"a product: the least of the first axis first, then of the next", `
search = "product"
[axis."--a"]
values = [2, 1]
[axis."--b"]
values = [8, 4]
`, nil, []string{"baseline", "--a 1, --b 4", "--a 1, --b 8", "--a 2, --b 4", "--a 2, --b 8"}},
		{"a trial of its own that an axis spans too is planned once, under its own name", `
[axis."--a"]
values = [1, 2]
[[trial]]
name = "mine"
set = { "--a" = 1 }
`, nil, []string{"baseline", "mine", "--a 2"}},
		{"explicit trials", `
[[trial]]
name = "big"
set = { "--tp" = 8, "--x" = false }
risk = 9
[[trial]]
set = { "--tp" = 4 }
`, nil, []string{"baseline", "--tp 4", "big"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			search, axes := "", tt.text
			if strings.HasPrefix(tt.text, "\nsearch") {
				search, axes, _ = strings.Cut(tt.text, "[")
				axes = "[" + axes
			}
			s, err := read(t, head+search+axes+tail)
			if err != nil {
				t.Fatal(err)
			}
			trials, err := s.Expand(tt.base, Facts{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, names(trials)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRiskOfASetting: what changes nothing, or is known to take less, is safe;
// what cannot be compared may take more.
func TestRiskOfASetting(t *testing.T) {
	const mem, offload = "--mem-fraction-static", "--cpu-offload-gb"
	text := TextValue
	tests := []struct {
		name string
		axis string
		base map[string]Value
		to   Value
		want int
	}{
		{"more memory", mem, map[string]Value{mem: text("0.85")}, text("0.9"), 1},
		{"less memory", mem, map[string]Value{mem: text("0.85")}, text("0.8"), 0},
		{"the same, written otherwise", mem, map[string]Value{mem: text("0.9")}, text("0.90"), 0},
		{"more offload takes less", offload, map[string]Value{offload: text("4")}, text("8"), 0},
		{"less offload takes more", offload, map[string]Value{offload: text("4")}, text("0"), 1},
		{"the same offload, written otherwise", offload, map[string]Value{offload: text("4")}, text("4.0"), 0},
		{"the base is unknown", offload, nil, text("8"), 1},
		{"zero, and the base is unknown", offload, nil, text("0"), 1},
		{"the base is no number", offload, map[string]Value{offload: text("auto")}, text("8"), 1},
		{"zero, and the base is no number", offload, map[string]Value{offload: text("auto")}, text("0"), 1},
		{"no number, and the base is zero", offload, map[string]Value{offload: text("0")}, text("auto"), 1},
		{"no number, and the base is some", mem, map[string]Value{mem: text("0.9")}, text("auto"), 1},
		{"no order", "--x", nil, text("8"), 0},
		{"another backend", "--attention-backend", nil, text("triton"), 2},
		{"a patch", PatchesAxis, nil, text("mine"), 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := DefaultStudy().risk(map[string]Value{tt.axis: tt.to}, tt.base); got != tt.want {
				t.Errorf("want %d, got %d", tt.want, got)
			}
		})
	}
}

func TestMistakesAreToldWithTheirPlace(t *testing.T) {
	axis := "[axis.\"--a\"]\nvalues = [1]\n"
	tests := []struct{ name, text, want, hint string }{
		{"unknown key", head + "promot = \"ask\"\n" + axis + tail, `tune.toml:4: cannot use promot: there is no such key`, "did you mean promote?"},
		{"unknown key of an axis", head + axis + "monotonic = \"memory-up\"\n" + tail, `:6: cannot use axis.--a.monotonic: there is no such key`, "did you mean axis.--a.monotone?"},
		{"no deadline", strings.Replace(head, "deadline", "notes", 1) + axis + tail, `cannot use deadline: it is missing`, ""},
		{"a deadline that is none", strings.Replace(head, "06:30", "soon", 1) + axis + tail, `:3: cannot use deadline = "soon": it takes a time of the day`, ""},
		{"metric", head + axis + tail + "[objective]\nmetric = \"p99_tfft_ms\"", `there is no such metric`, `did you mean "p99_ttft_ms"?`},
		{"monotone without numbers", head + "[axis.\"--b\"]\nvalues = [\"x\"]\nmonotone = \"memory-up\"" + tail, `cannot use axis.--b.values[0] = "x": it must be a number`, ""},
		{"a value twice", head + "[axis.\"--b\"]\nvalues = [1, \"1\"]\n" + tail, `it stands here twice`, ""},
		{"an axis that is none", head + "[axis.b]\nvalues = [1]\n" + tail, `it must be a flag`, ""},
		{"no load", head + axis, `cannot use load: there is none`, ""},
		{"CPUs that are none", head + axis + tail + "cpus = \"4-\"\n", `cannot use load[0].cpus = "4-": it must be numbers and ranges of CPUs`, ""},
		{"falling concurrency", head + axis + strings.Replace(tail, "8, 32", "32, 8", 1), `it must be more than the one before it`, ""},
		{"nothing varied", head + tail, `nothing is varied`, ""},
		{"a test that shall serve", head + "test = true\npromote = \"serve\"\n" + axis + tail, `cannot use promote = "serve": it must be ask: the winner of a test must not serve`, ""},
		{"take-over without a drain", head + axis + tail + "[takeover]\nlaunch = \"prod\"", `takeover.drain`, ""},
		{"a table as a value", head + "[axis.\"--b\"]\nvalues = [{}]" + tail, `it takes text, a number, true`, ""},
		{"too many", head + "search = \"product\"\n" + product(4, 10) + tail, `more than 1000 trials`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := read(t, tt.text)
			var all config.Errors
			if !errors.As(err, &all) {
				t.Fatalf("no config.Errors: %v", err)
			}
			if report := all.Report(); !strings.Contains(report, tt.want) || !strings.Contains(report, tt.hint) {
				t.Errorf("want %q and hint %q in\n%s", tt.want, tt.hint, report)
			}
		})
	}
}

// product is so many axes of so many values.
func product(axes, values int) string {
	var b strings.Builder
	for a := range axes {
		b.WriteString("[axis.\"--" + string(rune('a'+a)) + "\"]\nvalues = [")
		for v := range values {
			b.WriteString(string(rune('0'+v)) + ", ")
		}
		b.WriteString("]\n")
	}
	return b.String()
}

func TestDeadline(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ began, deadline, want string }{
		{"2026-02-19T22:00:00+01:00", "06:30", "2026-02-20T06:30:00+01:00"},
		{"2026-02-19T05:00:00+01:00", "06:30", "2026-02-19T06:30:00+01:00"},
		{"2026-02-19T06:30:00+01:00", "06:30", "2026-02-20T06:30:00+01:00"},
		{"2026-02-19T22:00:00+01:00", "8h", "2026-02-20T06:00:00+01:00"},
		{"2026-03-28T22:00:00+01:00", "06:30", "2026-03-29T06:30:00+02:00"}, // an hour less
		{"2026-10-24T22:00:00+02:00", "06:30", "2026-10-25T06:30:00+01:00"}, // an hour more
		{"2026-03-28T22:00:00+01:00", "02:30", "2026-03-29T03:30:00+02:00"}, // is skipped
		{"2026-10-24T22:00:00+02:00", "02:30", "2026-10-25T02:30:00+02:00"}, // comes twice
		{"2026-10-25T02:40:00+02:00", "02:30", "2026-10-25T02:30:00+01:00"}, // the second one is still to come
	}
	for _, tt := range tests {
		var d Deadline
		if err := d.UnmarshalText([]byte(tt.deadline)); err != nil {
			t.Fatal(err)
		}
		began, _ := time.Parse(time.RFC3339, tt.began)
		if got := d.After(began, berlin).In(berlin).Format(time.RFC3339); got != tt.want {
			t.Errorf("%s after %s is %s, want %s", tt.deadline, tt.began, got, tt.want)
		}
	}
}
