package shim_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sglaunch/internal/shim/wire"
)

// In the journal a bar is a line, and a message behind it another; the log has
// the bytes as they are.
func TestStdoutIsTheJournal(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	info, err := write.Stat()
	if err != nil {
		t.Fatal(err)
	}
	st := info.Sys().(*syscall.Stat_t)
	r := newRig(t, rigOptions{stdout: write, env: []string{fmt.Sprintf("JOURNAL_STREAM=%d:%d", st.Dev, st.Ino)}})
	write.Close()
	p := r.supervisor()
	p.spawn(r.spec(1, "printf", `one\n\r 50%%|# |\r100%%|##|[2026-02-19 05:52:10] done\nend`))
	p.await(wire.Drained)
	p.finish(0)
	got, err := io.ReadAll(read)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "journal", got, []byte("one\n100%|##|\n[2026-02-19 05:52:10] done\nend\n"))
	same(t, "log", r.log(1), []byte("one\n\r 50%|# |\r100%|##|[2026-02-19 05:52:10] done\nend"))
	r.exit()
}

// systemd hears what the supervisor says, and a watchdog that is petted though
// there is no supervisor.
func TestSystemdIsTold(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := newRig(t, rigOptions{env: []string{"NOTIFY_SOCKET=" + socket, "WATCHDOG_USEC=100000"}})
	p := r.supervisor()
	p.send(wire.Message{Type: wire.Notify, Text: "READY=1\nSTATUS=serving"})
	heard := map[string]int{}
	buf := make([]byte, 4096)
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	for heard["WATCHDOG=1"] < 3 || heard["READY=1\nSTATUS=serving"] == 0 {
		n, err := conn.Read(buf)
		if err != nil {
			t.Fatalf("heard only %v: %v", heard, err)
		}
		heard[strings.TrimSpace(string(buf[:n]))]++
	}
	p.finish(0)
	r.exit()
}
