package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var small = Check{Generations: 5, Tokens: 64, BatchSizes: []int{1, 3}, Limit: 5 * time.Second}

func TestBatches(t *testing.T) {
	if diff := cmp.Diff([]int{1, 8, 32, 1, 8, 25}, (Check{Generations: 75, BatchSizes: []int{1, 8, 32}}).Batches()); diff != "" {
		t.Error(diff)
	}
	rapid.Check(t, func(t *rapid.T) {
		c := Check{Generations: rapid.IntRange(0, 300).Draw(t, "n"), BatchSizes: rapid.SliceOf(rapid.IntRange(-1, 64)).Draw(t, "sizes")}
		sum := 0
		for _, n := range c.Batches() {
			if n < 1 || n > max(1, slices.Max(append(c.BatchSizes, 1))) {
				t.Errorf("a batch of %d", n)
			}
			sum += n
		}
		if sum != c.Generations {
			t.Errorf("%d answers in batches, want %d", sum, c.Generations)
		}
	})
}

// model is a server that generates; without a path it answers 404.
type model struct {
	t        *testing.T
	info     string // of /model_info
	server   string // of /get_server_info
	models   string // of /v1/models
	generate func(w http.ResponseWriter, prompts []string, request map[string]any)
	complete func(w http.ResponseWriter, prompts []string)
	requests atomic.Int32
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var request map[string]any
	if r.Method == http.MethodPost {
		if err := json.Unmarshal(body, &request); err != nil || r.Header.Get("Authorization") != "Bearer k" {
			m.t.Errorf("%s without a key or a body: %v %q", r.URL.Path, err, body)
		}
	}
	text := func(field string) (all []string) {
		for _, p := range request[field].([]any) {
			all = append(all, p.(string))
		}
		return all
	}
	switch {
	case r.URL.Path == "/model_info" && m.info != "":
		fmt.Fprint(w, m.info)
	case r.URL.Path == "/get_server_info" && m.server != "":
		fmt.Fprint(w, m.server)
	case r.URL.Path == "/v1/models" && m.models != "":
		fmt.Fprint(w, m.models)
	case r.URL.Path == "/generate" && m.generate != nil:
		m.requests.Add(1)
		m.generate(w, text("text"), request)
	case r.URL.Path == "/v1/completions" && m.complete != nil:
		m.complete(w, text("prompt"))
	default:
		http.NotFound(w, r)
	}
}

func (m *model) ask(t *testing.T, o Options, c Check) Heard {
	m.t = t
	server := httptest.NewServer(m)
	defer server.Close()
	o.URL, o.APIKey = server.URL, "k"
	return New(o).Ask(context.Background(), c, func(int) {})
}

// says answers as SGLang does, every prompt with the same entries.
func says(text, meta string) func(http.ResponseWriter, []string, map[string]any) {
	return func(w http.ResponseWriter, prompts []string, _ map[string]any) {
		one := fmt.Sprintf(`{"text": %q, "meta_info": %s}`, text, meta)
		fmt.Fprintf(w, "[%s]", strings.Join(slices.Repeat([]string{one}, len(prompts)), ","))
	}
}

func TestAskSpeaksToSGLang(t *testing.T) {
	var asked []string
	m := &model{info: `{"is_generation": true}`, models: `{"data": [{"id": "glm", "max_model_len": 560}]}`}
	m.generate = func(w http.ResponseWriter, prompts []string, request map[string]any) {
		asked = append(asked, prompts...)
		params := request["sampling_params"].(map[string]any)
		if params["temperature"] != 0.0 || params["max_new_tokens"] != 48.0 || request["return_logprob"] != true {
			t.Errorf("asked for %v", request)
		}
		says(" stone river", `{"completion_tokens": 2, "output_token_logprobs": [[-0.5, 7, null], [-1, 9, "x"]]}`)(w, prompts, request)
	}
	h := m.ask(t, Options{}, small)
	if h.Undone != "" || len(h.Answers) != 5 || h.Tokens != 48 {
		t.Fatalf("got %+v", h)
	}
	a := h.Answers[4]
	if !slices.Equal(a.Tokens, []int{7, 9}) || !slices.Equal(a.Logprobs, []float64{-0.5, -1}) || a.Count != 2 || a.Text != " stone river" {
		t.Errorf("heard %+v", a)
	}
	slices.Sort(asked)
	if len(slices.Compact(asked)) != 5 {
		t.Errorf("the prompts are not different: %q", asked)
	}
	if n := m.requests.Load(); n != 3 {
		t.Errorf("%d requests for batches of 1, 3 and 1", n)
	}
}

// What is not finite is null in JSON, or a word that is no JSON at all.
func TestAskHearsWhatIsNoNumber(t *testing.T) {
	for _, word := range []string{"null", "NaN", "-Infinity", `"x"`} {
		m := &model{generate: says(`NaN \" Infinity`, `{"output_token_logprobs": [[-0.5, 7], [`+word+`, 9]]}`)}
		h := m.ask(t, Options{}, small)
		if h.Undone != "" || len(h.Answers) != 5 || !math.IsNaN(h.Answers[0].Logprobs[1]) || h.Answers[0].Logprobs[0] != -0.5 {
			t.Errorf("%s: %+v", word, h)
		}
		if h.Answers[0].Text != `NaN \" Infinity` {
			t.Errorf("%s: the text became %q", word, h.Answers[0].Text)
		}
	}
}

// A server that drafts tokens dies, in some versions, of a request for their
// probabilities; what it tells of them elsewhere may be the first alone.
func TestAskSparesAServerThatDrafts(t *testing.T) {
	m := &model{}
	m.generate = func(w http.ResponseWriter, prompts []string, request map[string]any) {
		if _, asked := request["return_logprob"]; asked {
			t.Error("it was asked for probabilities")
		}
		says("a b", `{"completion_tokens": 2, "output_token_logprobs": [[-0.5, 7]]}`)(w, prompts, request)
	}
	for server, o := range map[string]Options{"": {Speculates: true}, `{"version": "0.5.9", "speculative_algorithm": "EAGLE3"}`: {}} {
		m.server = server // a command behind a script does not tell
		if h := m.ask(t, o, small); h.Undone != "" || len(h.Answers) != 5 || h.Answers[0].Tokens != nil {
			t.Errorf("%q: %+v", server, h)
		}
	}
}

func TestAskFallsBack(t *testing.T) {
	t.Run("without probabilities", func(t *testing.T) {
		m := &model{}
		m.generate = func(w http.ResponseWriter, prompts []string, request map[string]any) {
			if request["return_logprob"] == true {
				http.Error(w, "not with speculative decoding", http.StatusBadRequest)
				return
			}
			says("a", `{"completion_tokens": 1}`)(w, prompts, request)
		}
		if h := m.ask(t, Options{}, small); h.Undone != "" || len(h.Answers) != 5 || m.requests.Load() != 4 {
			t.Errorf("%+v in %d requests", h, m.requests.Load())
		}
	})
	t.Run("without probabilities that it cannot write", func(t *testing.T) {
		m := &model{}
		m.generate = func(w http.ResponseWriter, prompts []string, request map[string]any) {
			if request["return_logprob"] == true {
				http.Error(w, "Out of range float values are not JSON compliant", http.StatusInternalServerError)
				return
			}
			says("!!!!", `{"completion_tokens": 1}`)(w, prompts, request)
		}
		if h := m.ask(t, Options{}, small); h.Undone != "" || len(h.Answers) != 5 {
			t.Errorf("%+v", h)
		}
	})
	t.Run("to the OpenAI form", func(t *testing.T) {
		m := &model{complete: func(w http.ResponseWriter, prompts []string) {
			choice := `{"index": 0, "text": "so it is"}`
			fmt.Fprintf(w, `{"choices": [%s], "usage": {"completion_tokens": %d}}`, strings.Join(slices.Repeat([]string{choice}, len(prompts)), ","), 3*len(prompts))
		}}
		if h := m.ask(t, Options{}, small); h.Undone != "" || len(h.Answers) != 5 || h.Answers[1].Count != 3 || h.Answers[1].Text != "so it is" {
			t.Errorf("%+v", h)
		}
	})
}

// What cannot be checked is said and is no fault.
func TestAskThatCannotBe(t *testing.T) {
	refuses := func(status int) func(http.ResponseWriter, []string, map[string]any) {
		return func(w http.ResponseWriter, _ []string, _ map[string]any) { http.Error(w, "no", status) }
	}
	for name, c := range map[string]struct {
		model   *model
		options Options
		undone  string
	}{
		"prefill node":    {&model{}, Options{NoGenerate: "a prefill node takes requests from its router alone"}, "a prefill node"},
		"decode node":     {&model{server: `{"disaggregation_mode": "decode"}`, generate: says("x", "{}")}, Options{}, "a decode node"},
		"follower":        {&model{}, Options{Follower: true}, "not the first"},
		"embedding model": {&model{info: `{"is_generation": false}`, generate: says("x", "{}")}, Options{}, "generates nothing"},
		"no endpoint":     {&model{}, Options{}, "/v1/completions answers 404"},
		"refused":         {&model{generate: refuses(403)}, Options{}, "/generate answers 403: no"},
		"tells the key": {&model{generate: func(w http.ResponseWriter, _ []string, _ map[string]any) {
			http.Error(w, "api_key='k'", http.StatusForbidden)
		}}, Options{}, "403: api_key='****'"},
		"full":            {&model{generate: refuses(503)}, Options{}, "/generate answers 503"},
		"cannot":          {&model{generate: refuses(501)}, Options{}, "/generate answers 501"},
		"not understood":  {&model{generate: refuses(400)}, Options{}, "/generate answers 400"},
		"small model":     {&model{models: `{"data": [{"id": "m", "max_model_len": 520}]}`, generate: says("x", "{}")}, Options{}, "room for 520 tokens"},
		"nonsense":        {&model{generate: func(w http.ResponseWriter, _ []string, _ map[string]any) { fmt.Fprint(w, "]") }}, Options{}, "cannot be read"},
		"too few answers": {&model{generate: func(w http.ResponseWriter, _ []string, _ map[string]any) { fmt.Fprint(w, "[]") }}, Options{}, "0 answers to 1 prompts"},
	} {
		t.Run(name, func(t *testing.T) {
			h := c.model.ask(t, c.options, small)
			if !strings.Contains(h.Undone, c.undone) || h.Silent || len(h.Answers) > 0 {
				t.Errorf("got %+v, want it undone by %q", h, c.undone)
			}
		})
	}
}

// A server that fails at what it is asked has answered; once may be chance.
func TestAskOfAServerThatFails(t *testing.T) {
	for name, c := range map[string]struct{ fails, faults int }{"once": {2, 0}, "at one batch": {3, 1}, "always": {99, 5}} {
		m := &model{}
		m.generate = func(w http.ResponseWriter, prompts []string, request map[string]any) {
			if int(m.requests.Load()) <= c.fails {
				http.Error(w, "NaN in the logits", http.StatusInternalServerError)
				return
			}
			says("a", `{"completion_tokens": 1}`)(w, prompts, request)
		}
		h := m.ask(t, Options{}, small)
		var faults []string
		for _, a := range h.Answers {
			if f := a.Fault(); f != "" {
				faults = append(faults, f)
			}
		}
		if h.Undone != "" || len(h.Answers) != 5 || len(faults) != c.faults || slices.ContainsFunc(faults, func(f string) bool { return f != "/generate answers 500: NaN in the logits" }) {
			t.Errorf("%s: %+v", name, h)
		}
	}
}

// What was answered before the limit counts; a server that answers nothing is
// silent.
func TestAskHasALimit(t *testing.T) {
	for _, first := range []bool{true, false} {
		m := &model{}
		m.generate = func(w http.ResponseWriter, prompts []string, request map[string]any) {
			if !first || m.requests.Load() > 1 {
				<-time.After(400 * time.Millisecond)
			}
			says("a", "{}")(w, prompts, request)
		}
		c := small
		c.Limit = 200 * time.Millisecond
		begun := time.Now()
		h := m.ask(t, Options{}, c)
		if h.Undone != "it took longer than 200ms" || h.Silent == first || (len(h.Answers) == 1) != first {
			t.Errorf("got %+v", h)
		}
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("took %s", took)
		}
	}
}

// A check that goes on keeps every other probe away.
func TestAskIsTheOnlyProbe(t *testing.T) {
	asked := make(chan struct{})
	m := &model{t: t, generate: func(w http.ResponseWriter, prompts []string, request map[string]any) {
		asked <- struct{}{}
		says("a", "{}")(w, prompts, request)
	}}
	server := httptest.NewServer(m)
	defer server.Close()
	p := New(Options{URL: server.URL, APIKey: "k"})
	done := make(chan Heard)
	go func() {
		done <- p.Ask(context.Background(), Check{Generations: 1, Tokens: 16, Limit: 5 * time.Second}, func(int) {})
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	for len(p.turn) == 0 {
		<-time.After(time.Millisecond)
	}
	if a := p.Probe(ctx); a.Err == "" {
		t.Errorf("a probe beside a check: %+v", a)
	}
	<-asked
	if h := <-done; h.Undone != "" {
		t.Errorf("%+v", h)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`[{"text": "NaN", "meta_info": {"output_token_logprobs": [[NaN, 1]]}}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var replies []nativeReply
		if json.Unmarshal(withoutNaN(data), &replies) == nil {
			for _, r := range replies {
				r.answer()
			}
		}
		if json.Valid(data) && string(withoutNaN(data)) != string(data) {
			t.Errorf("%q is JSON and became %q", data, withoutNaN(data))
		}
	})
}
