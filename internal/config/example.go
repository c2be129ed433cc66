package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"sglaunch/patch"
)

const exampleHead = `# launch.toml: every key of this version of sglaunch, with its default.
# A file needs only what differs. Relative paths are relative to the file.
# Each key is a flag too: --relaunch.attempts=3. Flags beat the file, and
# "-c launch.toml -- command" replaces [server] command.
`

// Example is launch.toml.example: every key, its default, one
// comment.
func Example() string {
	c := Default()
	b := strings.Builder{}
	b.WriteString(exampleHead)
	fields := keys(&c)
	for len(fields) > 0 {
		if fields[0].rows() != nil {
			writeExampleRows(&b, fields[0])
			fields = fields[1:]
			continue
		}
		table, _ := split(fields[0].Key)
		n := slices.IndexFunc(fields, func(f field) bool { t, _ := split(f.Key); return t != table })
		if n < 0 {
			n = len(fields)
		}
		writeExample(&b, "["+table+"]", fields[:n], "")
		fields = fields[n:]
	}
	return b.String()
}

// writeExampleRows shows an array of tables as a comment: the default has none.
func writeExampleRows(b *strings.Builder, f field) {
	rows := fallbackFields
	if f.Key == "patch" {
		rows = patchFields
	}
	writeExample(b, "[["+f.Key+"]]", rows(), "# ")
}

// writeExample writes one table, its comments in one column.
func writeExample(b *strings.Builder, header string, fields []field, prefix string) {
	fmt.Fprintf(b, "\n%s%s\n", prefix, header)
	names, lines := 0, make([]string, len(fields))
	for _, f := range fields {
		_, name := split(f.Key)
		names = max(names, len(name))
	}
	width := 0
	for i, f := range fields {
		_, name := split(f.Key)
		lines[i] = fmt.Sprintf("%s%-*s = %s", prefix, names, name, f.text())
		if len(lines[i]) <= longLine {
			width = max(width, len(lines[i]))
		}
	}
	for i, f := range fields {
		fmt.Fprintf(b, "%-*s  # %s\n", width, lines[i], f.about())
	}
}

// longLine keeps one long default from pushing all comments to the right.
const longLine = 48

// about is the comment of a key, its words first.
func (f field) about() string {
	about := f.Tag.Get("about")
	if words := f.oneof(); len(words) > 0 {
		return strings.TrimSuffix(strings.Join(words, " | ")+"; "+about, "; ")
	}
	return about
}

// fallbackFields is the example's [[fallback]], a rung that a person might add.
func fallbackFields() []field {
	rung := reflect.ValueOf(Fallback{
		Cause: "oom_graph_capture", Phase: "graph_capture",
		Set: map[string]string{"--cuda-graph-max-bs": "x0.5|64"},
		Env: map[string]string{"NCCL_DEBUG": "INFO"},
		Min: 8, Max: 2,
	})
	var fields []field
	for _, f := range tomlFields(rung.Type()) {
		fields = append(fields, field{join("fallback", tomlName(f)), rung.FieldByIndex(f.Index), f.Tag})
	}
	return fields
}

// patchFields is the example's [[patch]]: each key with its default.
func patchFields() []field {
	var fields []field
	for _, f := range tomlFields(reflect.TypeFor[patch.Patch]()) {
		key, entry := join("patch", tomlName(f)), patchAbout[tomlName(f)]
		if entry.about != "" {
			tag := fmt.Sprintf("about:%q oneof:%q", entry.about, entry.oneof)
			fields = append(fields, field{key, reflect.ValueOf(entry.value), reflect.StructTag(tag)})
		}
	}
	return fields
}

// patchAbout holds what the example says of each key of [[patch]], whose
// struct belongs to the package patch. Policies show their default, the rest
// what a patch may look like.
var patchAbout = map[string]struct {
	value        any
	about, oneof string
}{
	"use":           {"flashinfer-cutlass-autotune", "a patch that ships with sglaunch; or one's own:", ""},
	"name":          {"my-change", "of one's own: state, journal, reports", ""},
	"module":        {"sglang.srt.model_executor.model_runner", "what to change, found by the server's interpreter", ""},
	"file":          {"", "or its path", ""},
	"edit":          {[]patch.Edit{{Find: "old()", Replace: "new()", Within: "def name", Count: 1}}, "find must occur exactly count times within the scope", ""},
	"diff":          {"", "or a unified diff", ""},
	"variant":       {[]patch.Variant{}, "the same for releases where the code moved: { version = \">=0.5.7,<0.5.13\", edit = [...] }", ""},
	"requires":      {[]patch.Requirement{}, "flags without which it has no effect: { flag = \"--name\", is = [\"value\"] }", ""},
	"proof":         {map[string]string{"phase": "autotune", "ranks": patch.RanksAll}, "what the output shows if it took effect; or { marker = \"regexp\", before = \"graph_capture\" }", ""},
	"method":        {patch.MethodFile, "how it reaches the interpreter", "file overlay"},
	"revert":        {patch.RevertOnExit, "on-exit: once the process tree is gone", "on-exit never"},
	"on_refused":    {patch.RefusedAbort, "where the plan refuses it", "abort run-unpatched"},
	"on_unproven":   {patch.UnprovenWarn, "where the output does not prove it", "warn relaunch fail"},
	"allow_changed": {false, "also patch a file that differs from its release", ""},
}
