package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"
)

// manner is how a server behaves. It answers as one does, a token at a time.
type manner struct {
	fails int // it refuses each so-many-th request after the clients' warm-up; 0 = none
	room  int // tokens that it says to hold at once; 0 = many
}

// server is one that runs.
type server struct {
	manner
	answered atomic.Int64
}

// tokenTime is how long a token takes.
const tokenTime = 2 * time.Millisecond

func (m manner) start() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc((&server{manner: m}).serve))
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "info"):
		room := s.room
		if room == 0 {
			room = 1_000_000
		}
		state := map[string]any{
			"avg_spec_accept_length": 2.5, "last_gen_throughput": 123.4, "effective_max_running_requests_per_dp": 100,
			"memory_usage": map[string]int{"token_capacity": room},
		}
		answer(w, map[string]any{"model_path": "/m", "tokenizer_path": "/m", "internal_states": []any{state}})
	case r.URL.Path == "/v1/models":
		answer(w, map[string]any{"data": []any{map[string]string{"id": "/m", "root": "/m"}}})
	case r.Method != http.MethodPost || strings.Contains(r.URL.Path, "flush"):
		answer(w, map[string]any{})
	default:
		s.generate(w, r)
	}
}

// request is what both forms of a request have of importance.
type request struct {
	MaxTokens int `json:"max_tokens"`
	Params    struct {
		MaxNewTokens int `json:"max_new_tokens"`
	} `json:"sampling_params"`
	IDs json.RawMessage `json:"input_ids"`
}

func (s *server) generate(w http.ResponseWriter, r *http.Request) {
	var q request
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if n := s.answered.Add(1); s.fails > 0 && n > 1 && (n-1)%int64(s.fails) == 0 {
		http.Error(w, `{"error": {"message": "the stand-in refuses this one"}}`, http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(v any) {
		text, _ := json.Marshal(v) // plain maps
		fmt.Fprintf(w, "data: %s\n\n", text)
		w.(http.Flusher).Flush()
	}
	if strings.HasPrefix(r.URL.Path, "/v1/") {
		for range q.MaxTokens {
			time.Sleep(tokenTime) // a real server takes its time too, which the clients measure
			event(map[string]any{"choices": []any{map[string]any{"index": 0, "text": " w"}}})
		}
		event(map[string]any{"choices": []any{}, "usage": map[string]int{"prompt_tokens": 5, "completion_tokens": q.MaxTokens}})
	} else {
		var batch [][]int
		_ = json.Unmarshal(q.IDs, &batch) // a single prompt is no batch
		for token := 1; token <= q.Params.MaxNewTokens; token++ {
			time.Sleep(tokenTime) // a real server takes its time too, which the clients measure
			for i := range max(1, len(batch)) {
				meta := map[string]any{"prompt_tokens": 5, "completion_tokens": token, "cached_tokens": 0, "finish_reason": nil}
				if token == q.Params.MaxNewTokens {
					meta["finish_reason"] = map[string]string{"type": "length"}
				}
				event(map[string]any{"index": i, "text": strings.Repeat(" w", token), "output_ids": []int{1}, "meta_info": meta})
			}
		}
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client sees a torn answer as one
}
