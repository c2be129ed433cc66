package rehearsal

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func TestAnswers(t *testing.T) {
	t.Parallel()
	s := stageFor(t, "", 100)
	p := play(t, s, append(launchArgs(s, 1), "--enable-metrics", "--served-model-name", "glm"))
	p.sees(ready)

	ask := `{"text": "Tell me about rivers", "sampling_params": {"max_new_tokens": 5}}`
	first, again := p.post("/generate", ask), p.post("/generate", ask)
	text := func(answer string) string { a, _, _ := strings.Cut(answer, `", "output_ids"`); return a }
	if text(first) != text(again) || len(strings.Fields(text(first))) < 6 {
		t.Errorf("one prompt is to have one answer of five words, got\n%s\n%s", first, again)
	}
	for name, c := range map[string]struct{ path, body, want string }{
		"native stream": {"/generate", `{"text": "a", "stream": true, "sampling_params": {"max_new_tokens": 3}}`, "data: [DONE]"},
		"batch":         {"/generate", `{"text": ["a", "b"], "sampling_params": {"max_new_tokens": 3}}`, `}}, {"text": `},
		"chat":          {"/v1/chat/completions", `{"messages": [{"role": "user", "content": "a b"}], "max_tokens": 4}`, `"completion_tokens": 4`},
		"chat stream":   {"/v1/chat/completions", `{"messages": [], "max_tokens": 2, "stream": true}`, `"object": "chat.completion.chunk"`},
		"completion":    {"/v1/completions", `{"prompt": "a", "max_tokens": 2}`, `"model": "glm"`},
	} {
		if got := p.post(c.path, c.body); !strings.Contains(got, c.want) {
			t.Errorf("%s: no %q in %s", name, c.want, got)
		}
	}
	checkTokens(t, p.post("/generate", `{"text": "a", "sampling_params": {"max_new_tokens": 200}}`))
	if code := p.get("/metrics"); code != 200 {
		t.Errorf("/metrics answered %d", code)
	}
	p.sees(`"POST /v1/completions HTTP/1.1" 200 OK`)
}

// checkTokens wants a token of its own for each word: where several share one, a
// sound answer repeats it by chance, and is taken for a wrong one.
func checkTokens(t *testing.T, answer string) {
	t.Helper()
	var said struct {
		Text string
		IDs  []int `json:"output_ids"`
	}
	if err := json.Unmarshal([]byte(answer), &said); err != nil {
		t.Fatalf("%v in %s", err, answer)
	}
	words, of := strings.Fields(said.Text), map[int]string{}
	if len(words) != 200 || len(said.IDs) != len(words) {
		t.Fatalf("%d words and %d tokens, not 200", len(words), len(said.IDs))
	}
	for i, id := range said.IDs {
		if other, taken := of[id]; taken && other != words[i] {
			t.Fatalf("%q and %q are both token %d", other, words[i], id)
		}
		of[id] = words[i]
	}
}

func TestRefusesBadRequests(t *testing.T) {
	t.Parallel()
	s := stageFor(t, "", 100)
	p := play(t, s, append(launchArgs(s, 1), "--api-key", "secret"))
	p.sees(ready)
	if code := p.get("/v1/models"); code != 401 {
		t.Errorf("without the key /v1/models answered %d, want 401", code)
	}
	if code := p.get("/health"); code != 200 {
		t.Errorf("/health needs no key, and answered %d", code)
	}
	for _, body := range []string{"", "[]", "{", `{"sampling_params": {"max_new_tokens": 0}}`, `{"sampling_params": {"max_new_tokens": "x"}}`, `{"sampling_params": 3}`} {
		req, err := http.NewRequest(http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d/generate", p.port), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer secret")
		req.Close = true
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		resp.Body.Close()
		if want := 400; body != "" && resp.StatusCode != want {
			t.Errorf("%q answered %d, want %d", body, resp.StatusCode, want)
		}
	}
}

// A drain waits for the requests that run, without any limit, and health is 503 meanwhile.
func TestDrainWaitsForRequests(t *testing.T) {
	t.Parallel()
	s := stageFor(t, "", 40)
	p := play(t, s, launchArgs(s, 1))
	p.sees(ready)
	var answer string
	var asked sync.WaitGroup
	asked.Go(func() {
		answer = p.post("/generate", `{"text": "long", "sampling_params": {"max_new_tokens": 1500}}`)
	})
	p.sees("#new-token: 1,")
	p.signal(syscall.SIGTERM)
	p.sees("Gracefully exiting... Remaining number of requests 1. Remaining requests remaining_rids=['")
	if code := p.get("/health"); code != 503 {
		t.Errorf("/health answered %d while draining, want 503", code)
	}
	p.sees("Health check request received during shutdown. Returning 503.")
	asked.Wait()
	if !strings.Contains(answer, `"completion_tokens": 1500`) {
		t.Errorf("the running request was not finished: %.200s", answer)
	}
	if how := p.ends(); how != "signal: killed" {
		t.Errorf("ended by %q", how)
	}
	p.sees("Decode batch, #running-req: 1,")
}

// Before the first request the handlers are uvicorn's: an ordinary end.
func TestStopBeforeTheFirstRequest(t *testing.T) {
	t.Parallel()
	s := stageFor(t, "", 60)
	p := play(t, s, append(launchArgs(s, 1), "--skip-server-warmup"))
	p.sees(ready)
	p.signal(syscall.SIGTERM)
	if how := p.ends(); how != "exit status 0" {
		t.Errorf("ended by %q", how)
	}
	p.sees("INFO:     Finished server process [")
	until(t, "the tree is gone", func() bool { return !groupAlive(p.group) })
}

// What goes wrong by itself, without any scenario.
func TestNaturalFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
		want string
		how  string
	}{
		{"unknown flag", []string{"--no-such-flag"}, "launch_server.py: error: unrecognized arguments: --no-such-flag", "exit status 2"},
		{"unknown backend", []string{"--moe-runner-backend", "none"}, "invalid choice: 'none'", "exit status 2"},
		{"quantization", []string{"--quantization", "fp8"}, "Invalid quantization 'fp8'. \nFlashInfer Cutlass MOE supports only", "exit status 1"},
		{"expert parallel size", []string{"--tp", "4", "--ep", "2"}, "The expert parallel size must be 1 or the same as the tensor parallel size", "exit status 1"},
		{"model path", []string{"--model-path", "/no/such/model"}, "huggingface_hub.errors.HFValidationError: Repo id must be in the form", "exit status 1"},
		{"too few GPUs", []string{"--tp", "9"}, "torch.AcceleratorError: CUDA error: invalid device ordinal", "signal: killed"},
		{"fraction too low", []string{"--mem-fraction-static", "0.3"}, "Not enough memory. Please try to increase --mem-fraction-static.", "signal: killed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := stageFor(t, "", 100)
			p := play(t, s, append(launchArgs(s, 1), c.args...))
			if how := p.ends(); how != c.how {
				t.Errorf("ended by %q, want %q", how, c.how)
			}
			p.sees(c.want)
		})
	}
}

func TestPortInUseByAnother(t *testing.T) {
	t.Parallel()
	s := stageFor(t, "", 100)
	first := play(t, s, launchArgs(s, 1))
	first.sees(ready)
	fork, err := s.Fork(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	second := start(t, first.port, fork.Command(fork.Args(1, first.port)...), fork.Env())
	second.sees("address already in use")
	if how := second.ends(); how != "exit status 1" {
		t.Errorf("ended by %q", how)
	}
}
