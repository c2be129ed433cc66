package conduct

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sglaunch/internal/sglangcmd"
	"sglaunch/internal/tune"
)

func serverOf(t *testing.T, handle http.HandlerFunc) endpoint {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	e, err := endpointOf(sglangcmd.Parse(strings.Fields("python -m sglang.launch_server --model-path /m --api-key s3cret"), nil, "/"), s.URL+"/health")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// 200 is flushed; 400 is busy and asked again; anything else is no flush.
func TestFlush(t *testing.T) {
	var asked atomic.Int64
	e := serverOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/flush_cache" {
			t.Errorf("asked for %s %s", r.Method, r.URL)
		}
		if asked.Add(1) < 3 {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	if err := e.flush(t.Context()); err != nil || asked.Load() != 3 {
		t.Errorf("after %d asks: %v", asked.Load(), err)
	}
	for code, want := range map[int]string{http.StatusBadRequest: "requests still run: no", http.StatusNotFound: "the server answers 404 no"} {
		e := serverOf(t, func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", code) })
		ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
		if err := e.flush(ctx); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v", code, err)
		}
		cancel()
	}
	hangs := serverOf(t, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := hangs.flush(ctx); err == nil {
		t.Error("a server that does not answer has flushed")
	}
}

// What the server says of itself is held against what it was asked to be.
func TestDiffers(t *testing.T) {
	e := serverOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/get_server_info" {
			http.NotFound(w, r) // an older or newer name
			return
		}
		_, _ = w.Write([]byte(`{"tp_size": 8, "mem_fraction_static": 0.88, "moe_runner_backend": "triton", "enable_x": false, "disable_y": true,
			"cuda_graph_bs": [1, 2, 4], "nothing": null}`))
	})
	info, err := e.info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	on, off := tune.Value{Kind: tune.Alone}, tune.Value{Kind: tune.Absent}
	same := map[string]tune.Value{"--tp": tune.TextValue("8"), "--mem-fraction-static": tune.TextValue("0.880"), "--disable-y": on, "--enable-x": off,
		"--cuda-graph-bs": tune.TextValue("1 2 4"), "--nothing": tune.TextValue("3"), "--never-told": tune.TextValue("1"), "--moe-runner-backend": off}
	if all := differs(info, same); len(all) > 0 {
		t.Errorf("%q", all)
	}
	other := map[string]tune.Value{"--tp": tune.TextValue("4"), "--mem-fraction-static": tune.TextValue("0.9"), "--moe-runner-backend": tune.TextValue("cutlass"),
		"--enable-x": on, "--disable-y": off, "--cuda-graph-bs": tune.TextValue("1 2")}
	want := []string{"cuda_graph_bs is [1,2,4], not 1 2", "disable_y is true, not off", "enable_x is false, not on",
		"mem_fraction_static is 0.88, not 0.9", "moe_runner_backend is triton, not cutlass", "tp_size is 8, not 4"}
	if diff := cmp.Diff(want, differs(info, other)); diff != "" {
		t.Error(diff)
	}
}

func TestEndpointOf(t *testing.T) {
	e, err := endpointOf(sglangcmd.Parse(strings.Fields("python -m sglang.launch_server --model-path /m --host 0.0.0.0 --port 31000 --api-key k"), nil, "/"), "")
	if err != nil || e.host() != "127.0.0.1" || e.port() != 31000 || e.key != "k" {
		t.Errorf("%+v %v", e, err)
	}
	if _, err := endpointOf(sglangcmd.Parse([]string{"/bin/server"}, nil, "/"), ""); err == nil || !strings.Contains(err.Error(), "set [ready] url") {
		t.Errorf("%v", err)
	}
	if e, err := endpointOf(sglangcmd.Parse([]string{"/bin/server"}, nil, "/"), "https://box/path"); err != nil || e.base != "https://box" || e.port() != 443 {
		t.Errorf("%+v %v", e, err)
	}
}
