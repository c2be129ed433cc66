package supervisor

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"sglaunch/internal/shim/wire"
	"sglaunch/supervisor/machine"
)

// Whoever else answers on the server's port makes no launch ready, and is named.
func TestAStrangerOnThePort(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	argv := []string{"python", "-m", "sglang.launch_server", "--model-path", "/m", "--port", port}
	watch := func(argv []string, url string, members ...int) *watcher {
		w := watching(t)
		w.h.Argv, w.h.URL = argv, url
		for _, pid := range members {
			w.members[pid] = wire.Proc{PID: pid}
		}
		return w
	}

	w := watch(argv, "", 1)
	for range 2 { // it is told once
		if !w.stranger(1) {
			t.Error("a stranger is believed")
		}
	}
	told := w.posted()
	if len(told) != 1 {
		t.Fatalf("it is told as %v", told)
	}
	if lost, ok := told[0].(machine.SourceLost); !ok || !strings.Contains(lost.Reason, "port "+port+" is answered by process "+strconv.Itoa(os.Getpid())) {
		t.Errorf("it is told as %v", told)
	}

	for name, w := range map[string]*watcher{
		"the server":        watch(argv, "", 1, os.Getpid()),
		"a person's URL":    watch(argv, "http://127.0.0.1:"+port),
		"a container":       watch(append([]string{"docker", "run", "image"}, argv...), ""),
		"nobody that shows": watch([]string{"python", "-m", "sglang.launch_server", "--model-path", "/m", "--port", "1"}, ""),
	} {
		if w.stranger(1) || len(w.posted()) > 0 {
			t.Errorf("%s is not believed", name)
		}
	}
}
