package conduct

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sglaunch/internal/tune"
	"sglaunch/internal/visible"
)

// shortNames are flags whose attribute has another name than the flag.
var shortNames = map[string]string{
	"--tp": "tp_size", "--tensor-parallel-size": "tp_size", "--pp": "pp_size", "--pipeline-parallel-size": "pp_size",
	"--dp": "dp_size", "--data-parallel-size": "dp_size", "--ep": "ep_size", "--expert-parallel-size": "ep_size",
	"--model": "model_path", "--tokenizer": "tokenizer_path",
}

// differs names the flags that the server resolved otherwise than they were
// set: then another server was measured than the one that was meant. A flag
// whose attribute the server does not tell is left out.
func differs(info map[string]any, flags map[string]tune.Value) (all []string) {
	for _, flag := range slices.Sorted(maps.Keys(flags)) {
		name, ok := shortNames[flag]
		if !ok {
			name = strings.ReplaceAll(strings.TrimLeft(flag, "-"), "-", "_")
		}
		is, told := info[name]
		if told && !agrees(is, flags[flag]) {
			all = append(all, fmt.Sprintf("%s is %s, not %s", name, shown(is), flags[flag]))
		}
	}
	return all
}

func agrees(is any, want tune.Value) bool {
	switch v := is.(type) {
	case bool:
		return v == (want.Kind == tune.Alone) && want.Kind != tune.Text
	case float64:
		n, err := strconv.ParseFloat(want.Text, 64)
		return want.Kind == tune.Text && err == nil && n == v || want.Kind == tune.Absent
	case string:
		return want.Kind == tune.Text && v == want.Text || want.Kind == tune.Absent
	case []any:
		var words []string
		for _, one := range v {
			words = append(words, shown(one))
		}
		return want.Kind == tune.Absent || slices.Equal(words, strings.Fields(want.Text))
	}
	return true // null, or a structure: what a default became is the server's business
}

func shown(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	text, _ := json.Marshal(v)
	return visible.Clip(string(text), 100)
}
