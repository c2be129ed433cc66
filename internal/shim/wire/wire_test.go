package wire

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// stream is one end of a connection whose other end is a buffer.
type stream struct{ *bytes.Buffer }

func (stream) Close() error { return nil }

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := NewConn(stream{&bytes.Buffer{}})
		text := rapid.String()
		m := Message{
			Type: rapid.SampledFrom([]string{Spawn, Print, Kill, Gap, "of the future"}).Draw(t, "type"),
			Text: text.Draw(t, "text"), Attempt: rapid.Int().Draw(t, "attempt"),
			From: rapid.Int64().Draw(t, "from"), Cut: rapid.Bool().Draw(t, "cut"),
			Limit: Duration(rapid.Int64().Draw(t, "limit")), At: time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "at"), 0).UTC(),
			Spec: &Spec{Argv: rapid.SliceOf(text).Draw(t, "argv"), Drain: Duration(time.Minute)},
		}
		o := Output{Attempt: 3, Offset: rapid.Int64Range(0, 1<<60).Draw(t, "offset"), Data: rapid.SliceOf(rapid.Byte()).Draw(t, "data")}
		if err := c.Send(m); err != nil {
			t.Fatal(err)
		}
		if err := c.SendOutput(o); err != nil {
			t.Fatal(err)
		}
		got, none, err := c.Receive()
		if err != nil || none != nil {
			t.Fatalf("received %v, %v", none, err)
		}
		m.Text = strings.ToValidUTF8(m.Text, "\ufffd")
		if d := cmp.Diff(&m, got, cmp.Comparer(func(a, b []string) bool { return len(a) == len(b) && (len(a) == 0 || cmp.Equal(a[0], b[0])) })); d != "" {
			t.Error(d)
		}
		_, out, err := c.Receive()
		if err != nil || out.Attempt != o.Attempt || out.Offset != o.Offset || !bytes.Equal(out.Data, o.Data) {
			t.Errorf("output %+v, %v", out, err)
		}
		if _, _, err := c.Receive(); err != io.EOF {
			t.Errorf("at the end: %v", err)
		}
	})
}

// Frames of several goroutines do not mix.
func TestSendersDoNotMix(t *testing.T) {
	a, b := net.Pipe()
	from, to := NewConn(a), NewConn(b)
	var wg sync.WaitGroup
	const senders, each = 4, 200
	for i := range senders {
		wg.Go(func() {
			for range each {
				_ = from.Send(Message{Type: Print, Attempt: i, Text: strings.Repeat("x", 100*i)})
				_ = from.SendOutput(Output{Attempt: i, Data: bytes.Repeat([]byte{byte(i)}, 1000*i)})
			}
		})
	}
	for range 2 * senders * each {
		m, o, err := to.Receive()
		switch {
		case err != nil:
			t.Fatal(err)
		case m != nil && len(m.Text) != 100*m.Attempt:
			t.Fatalf("message %+v", m)
		case o != nil && !bytes.Equal(o.Data, bytes.Repeat([]byte{byte(o.Attempt)}, 1000*o.Attempt)):
			t.Fatalf("output of %d bytes", len(o.Data))
		}
	}
	wg.Wait()
	_ = from.Close()
	if _, _, err := to.Receive(); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
}

func TestTooLarge(t *testing.T) {
	c := NewConn(stream{&bytes.Buffer{}})
	if err := c.Send(Message{Text: strings.Repeat("x", MaxFrame)}); err == nil {
		t.Error("a message over the bound was sent")
	}
	if err := c.SendOutput(Output{Data: make([]byte, MaxFrame)}); err == nil {
		t.Error("output over the bound was sent")
	}
}

// Whatever a broken peer sends, Receive answers with a frame or an error.
func FuzzReceive(f *testing.F) {
	good := stream{&bytes.Buffer{}}
	c := NewConn(good)
	_ = c.Send(Message{Type: Welcome, Hello: &Hello{Version: Version}})
	_ = c.SendOutput(Output{Attempt: 1, Offset: 5, Data: []byte("abc")})
	f.Add(good.Bytes())
	f.Add([]byte{})
	f.Add([]byte{0, 0, 0, 4, 2, 1, 2, 3, 4})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1})
	f.Add([]byte{0, 0, 0, 2, 1, '{', '}'})
	f.Add([]byte{0, 0, 0, 4, 1, 'n', 'u', 'l', 'l'})
	f.Add([]byte{0, 0, 0, 0, 9})
	f.Fuzz(func(t *testing.T, data []byte) {
		c := NewConn(stream{bytes.NewBuffer(data)})
		read := 0
		for {
			m, o, err := c.Receive()
			if err != nil {
				return
			}
			if (m == nil) == (o == nil) {
				t.Fatalf("received %v and %v", m, o)
			}
			size := int(binary.BigEndian.Uint32(data[read:]))
			if read += 5 + size; read > len(data) {
				t.Fatalf("read %d of %d bytes", read, len(data))
			}
		}
	})
}
