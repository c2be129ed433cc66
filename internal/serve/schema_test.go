package serve

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func schema(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	s, err := c.Compile("../../docs/schema/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func instance(t *testing.T, v any) any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// full is a Status in which nothing is left out.
func full() Status {
	at, n, w := time.Date(2026, 2, 19, 3, 4, 5, 0, time.UTC), int64(7), 512.5
	return Status{
		V: 1, Time: at, Launch: "glm", Attempt: 2, Event: EventStatus, ID: "x", Dir: "/x", Command: []string{"python"}, Began: at,
		State: "starting", Since: at, Text: "weights", Phase: "graph_capture", PhaseSince: at,
		Ranks: map[string]string{"TP0": "graph_capture"}, Lagging: []string{"TP3"}, Activities: []string{"jit_compile"},
		Progress: &Progress{12, 52, "graphs"}, Moved: &Moved{at, "graph-batch"}, Left: &Left{360, 300, 420, true},
		Ready: true, ReadySince: at, Announced: true, OutputCheck: &OutputCheck{"partial", 41, 75, "it took longer than 10m0s"}, Degraded: []string{"without patch p"},
		Next: &Next{at, "a relaunch may help"}, Failed: &Failure{1, "hung", "load_hang", "loading_weights", "quiet"},
		Stop: &Stop{"SIGTERM"}, Exit: &Exit{at, 10, "gave up"},
		GPUs:      []GPU{{Index: 1, UUID: "GPU-1", Name: "H200", Used: &n, Total: &n, Util: &n, MemUtil: &n, Watts: &w, Lost: true}},
		Processes: Processes{1, 2, 3, 4},
		Verdict:   "quiet", PhaseSeconds: map[string]float64{"starting": 1.5}, Failures: map[string]int{"load_hang": 1},
		Output: Output{7, 8, 9}, Silent: []string{"NVML: no answer"}, Restarts: 1, HTTP: "127.0.0.1:9180",
	}
}

// Every document fits its schema, and the schema knows no field that is not.
func TestSchema(t *testing.T) {
	status := schema(t, "status.json")
	for name, s := range map[string]Status{
		"full":    full(),
		"minimal": {V: 1, Time: time.Now(), Launch: "glm", Event: EventStatus, State: StateDead},
	} {
		if err := status.Validate(instance(t, s)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	got := instance(t, full()).(map[string]any)
	for field := range status.Properties {
		if _, ok := got[field]; !ok {
			t.Errorf("the schema has %q, a full status has not", field)
		}
	}
	envelope := schema(t, "envelope.json")
	e := Envelope{V: 1, Time: time.Now(), Launch: "glm", Attempt: 1, Event: "gave_up", Text: "x", Fields: map[string]any{"code": 10}}
	if err := envelope.Validate(instance(t, e)); err != nil {
		t.Error(err)
	}
	if err := envelope.Validate(instance(t, Envelope{})); err == nil {
		t.Error("an empty envelope fits")
	}
}

// A field that is added to a document is added to full above, and so to the
// schema.
func TestFullIsFull(t *testing.T) {
	v := reflect.ValueOf(full())
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("full leaves out %s", v.Type().Field(i).Name)
		}
	}
}
