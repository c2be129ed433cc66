package phases

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestSchema holds every report of the own-made logs against the published
// schema of `explain --json`.
func TestSchema(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("../docs/schema/explain.json")
	if err != nil {
		t.Fatal(err)
	}
	check := func(name string, r Report) {
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s: %v\n%s", name, err, data)
		}
	}
	check("nothing", explainBytes(nil))
	for _, path := range logs(t) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		check(path, explainBytes(data))
	}
}

// TestReportReadsBack: whoever keeps a report as JSON gets the same back.
func TestReportReadsBack(t *testing.T) {
	data, err := os.ReadFile("testdata/0.5.9/two-attempts-fail.log")
	if err != nil {
		t.Fatal(err)
	}
	want := asJSON(t, explainBytes(data))
	var r Report
	if err := json.Unmarshal([]byte(want), &r); err != nil {
		t.Fatal(err)
	}
	if got := asJSON(t, r); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
