package phases

import (
	"bytes"
	"fmt"
	"os"
	"testing"
)

// serviceLog is what most of a long log consists of.
func serviceLog(b *testing.B, megabytes int) []byte {
	b.Helper()
	start, err := os.ReadFile("testdata/0.5.9/healthy-tp4.log")
	if err != nil {
		b.Fatal(err)
	}
	log := bytes.NewBuffer(start)
	for i := 0; log.Len() < megabytes<<20; i++ {
		at := fmt.Sprintf("2026-02-19 %02d:%02d:%02d", i/3600%24, i/60%60, i%60)
		fmt.Fprintf(log, "[%s TP0] Decode batch, #running-req: %d, #token: %d, token usage: 0.01, cuda graph: True, gen throughput (token/s): 1500.34, #queue-req: 0\n", at, i%97, i)
		fmt.Fprintf(log, "[%s TP0] Prefill batch, #new-seq: 1, #new-token: %d, #cached-token: 0, token usage: 0.01, #running-req: %d, #queue-req: 0, input throughput (token/s): 2060.11\n", at, i%997, i%97)
		fmt.Fprintf(log, "[%s] INFO:     192.0.2.%d:50000 - \"POST /v1/chat/completions HTTP/1.1\" 200 OK\n", at, i%250)
	}
	return log.Bytes()
}

func BenchmarkReadService(b *testing.B) {
	log := serviceLog(b, 64)
	b.SetBytes(int64(len(log)))
	for b.Loop() {
		if _, err := Read(bytes.NewReader(log), BuiltinRules()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFeedLive is the supervisor's part: pty-sized chunks, last lines kept.
func BenchmarkFeedLive(b *testing.B) {
	log := serviceLog(b, 16)
	b.SetBytes(int64(len(log)))
	for b.Loop() {
		t := NewTracker(BuiltinRules())
		for rest := log; len(rest) > 0; {
			n := min(len(rest), 4095)
			t.Feed(rest[:n])
			rest = rest[n:]
		}
	}
}

// BenchmarkReadText reads lines that no fast way knows: every rule is asked.
func BenchmarkReadText(b *testing.B) {
	line := []byte("the quick brown fox jumps over the lazy dog while loading the checkpoint and its tokenizer from the cache\n")
	log := bytes.Repeat(line, 64<<20/len(line))
	b.SetBytes(int64(len(log)))
	for b.Loop() {
		if _, err := Read(bytes.NewReader(log), BuiltinRules()); err != nil {
			b.Fatal(err)
		}
	}
}
