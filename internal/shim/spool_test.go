package shim

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"sglaunch/internal/rawlog"
	"sglaunch/internal/shim/wire"
)

// readAll reads a lane to its end in pieces of a size.
func readAll(s *spool, l lane, piece int) (got []byte, lost int64) {
	wake := newBell()
	s.listen(wake)
	defer s.unlisten(wake)
	buf := make([]byte, piece)
	for offset := int64(0); ; {
		r := s.read(buf, offset, l)
		got = append(got, buf[:r.n]...)
		lost += r.lost
		offset = r.next
		if r.end {
			return got, lost
		}
		if r.all || r.n == 0 && r.lost == 0 {
			<-wake
		}
	}
}

// A reader that has all there is may wait for the bell: until there is more, and not
// where nothing can come any more.
func TestReaderKnowsWhenToWait(t *testing.T) {
	s := newSpool(1)
	buf := make([]byte, 4)
	read := func(offset int64) stretch { return s.read(buf, offset, both) }
	s.add([]byte("sixbyt"), both)
	if part, rest := read(0), read(4); part.all || !rest.all {
		t.Errorf("four of six bytes: %+v; the other two: %+v", part, rest)
	}
	s.end(false)
	if rest := read(4); rest.n != 2 || rest.all {
		t.Errorf("after the end: %+v", rest)
	}
}

// Whoever reads, however slowly and in whatever pieces, gets every byte of its
// lane, in order, as long as the disk keeps up.
func TestEveryReaderGetsEveryByte(t *testing.T) {
	defer goleak.VerifyNone(t)
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "spool")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		s := newSpool(1)
		f, err := rawlog.Create(filepath.Join(dir, "log"), rawlog.Rotation{Size: 300_000})
		if err != nil {
			t.Fatal(err)
		}
		s.keep(f, func(text string) { t.Errorf("trouble: %s", text) })

		lanes := []lane{both}
		if rapid.Bool().Draw(t, "pipes") {
			lanes = []lane{output, errout}
		}
		sizes := rapid.SliceOfN(rapid.IntRange(1, 1<<20), 1, 16).Draw(t, "sizes")
		early := rapid.IntRange(0, len(sizes)).Draw(t, "reader starts before piece")
		want := map[lane][]byte{}
		var wg sync.WaitGroup
		read := func(l lane, piece int) {
			wg.Go(func() {
				got, lost := readAll(s, l, piece)
				if !bytes.Equal(got, want[l]) || lost != 0 {
					t.Errorf("lane %d: got %d bytes, lost %d, want %d", l, len(got), lost, len(want[l]))
				}
			})
		}
		pieces := map[lane]int{}
		for _, l := range append(lanes, both) {
			pieces[l] = rapid.IntRange(100, 100_000).Draw(t, "piece")
		}
		random := rand.NewChaCha8([32]byte{1})
		var all [][]byte
		var from []lane
		for i, size := range sizes {
			p := make([]byte, size)
			_, _ = random.Read(p)
			l := lanes[i%len(lanes)]
			all, from = append(all, p), append(from, l)
			want[l] = append(want[l], p...)
			if l != both {
				want[both] = append(want[both], p...)
			}
		}
		for i, p := range all {
			if i == early {
				for l := range pieces {
					read(l, pieces[l])
				}
			}
			s.add(p, from[i])
		}
		s.end(false)
		<-s.sealed
		if early == len(all) {
			for l := range pieces {
				read(l, pieces[l])
			}
		}
		wg.Wait()
		log, err := rawlog.Open(filepath.Join(dir, "log"))
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		if kept, _ := io.ReadAll(log); !bytes.Equal(kept, want[both]) {
			t.Errorf("the log has %d bytes, want %d", len(kept), len(want[both]))
		}
	})
}

// Without a disk the last bytes are there, and the first are counted.
func TestWithoutDiskTheLossIsCounted(t *testing.T) {
	s := newSpool(1)
	s.unkept()
	var all []byte
	for i := range 200 {
		p := bytes.Repeat([]byte{byte(i)}, 50_000)
		all = append(all, p...)
		s.add(p, both)
	}
	s.end(false)
	got, lost := readAll(s, both, 64<<10)
	if want := int64(len(all) - ringSize); lost != want || !bytes.Equal(got, all[want:]) {
		t.Errorf("lost %d, got %d bytes; want %d and the rest", lost, len(got), want)
	}
	s.forget()
	if got, lost := readAll(s, both, 64<<10); len(got) != 0 || lost != int64(len(all)) {
		t.Errorf("forgotten, but %d bytes and %d lost", len(got), lost)
	}
}

// A hole in the log is passed over and counted, by every lane.
func TestHoles(t *testing.T) {
	s := newSpool(1)
	path := filepath.Join(t.TempDir(), "log")
	f, err := rawlog.Create(path, rawlog.Rotation{})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.WriteAt([]byte("0123456789"), 0)
	s.log, s.recorded, s.from, s.to, s.ended = f, 10, 10, 10, true
	s.holes = []span{{2, 4}, {7, 8}}
	got, lost := readAll(s, both, 3)
	if string(got) != "0145689" || lost != 3 {
		t.Errorf("got %q, lost %d", got, lost)
	}
	_ = os.Truncate(path, 6) // somebody cut the log short
	got, lost = readAll(s, both, 3)
	if string(got) != "0145" || lost != 6 {
		t.Errorf("after the cut: got %q, lost %d", got, lost)
	}
}

// Whoever has fallen so far behind that a part of the log was rotated away goes
// on behind it, and knows how much it missed.
func TestRotatedAway(t *testing.T) {
	s := newSpool(1)
	f, err := rawlog.Create(filepath.Join(t.TempDir(), "log"), rawlog.Rotation{Size: 3, Keep: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range []string{"012\n", "456\n", "89A\n", "CD"} {
		if _, err := f.WriteAt([]byte(line), int64(4*i)); err != nil {
			t.Fatal(err)
		}
	}
	s.log, s.recorded, s.from, s.to, s.ended = f, 14, 14, 14, true
	if got, lost := readAll(s, both, 3); string(got) != "89A\nCD" || lost != 8 {
		t.Errorf("got %q, lost %d", got, lost)
	}
}

func TestTurns(t *testing.T) {
	var turns turns
	turns.add(output, 10)
	turns.add(output, 20)
	turns.add(errout, 25)
	turns.add(output, 30)
	type found struct{ from, to, missing int64 }
	cases := []struct {
		offset int64
		l      lane
		want   found
	}{
		{0, output, found{0, 20, 0}},
		{12, output, found{12, 20, 0}},
		{20, output, found{25, 30, 0}},
		{0, errout, found{20, 25, 0}},
		{25, errout, found{30, 30, 0}},
		{3, both, found{3, 30, 0}},
		{30, output, found{30, 30, 0}},
	}
	for _, c := range cases {
		from, to, missing := turns.find(c.offset, 30, c.l)
		if got := (found{from, to, missing}); got != c.want {
			t.Errorf("find(%d, lane %d) = %v, want %v", c.offset, c.l, got, c.want)
		}
	}
	for i := range int64(3 * turnsKept) {
		turns.add([]lane{output, errout}[i%2], 31+i)
	}
	if len(turns.list) > turnsKept {
		t.Errorf("%d turns are kept", len(turns.list))
	}
	if _, _, missing := turns.find(0, 1<<40, output); missing != turns.floor {
		t.Errorf("missing %d before %d", missing, turns.floor)
	}
}

// The conclusions from deaths, as a table of what is read and what is then
// suspect or skipped.
func TestDeaths(t *testing.T) {
	type step struct {
		reading, read [2]int64
		died          bool
	}
	r := func(from, to int64) *wire.Range { return &wire.Range{Attempt: 1, From: from, To: to} }
	cases := map[string]struct {
		steps   []step
		suspect *wire.Range
		skip    []wire.Range
	}{
		"no reading":     {[]step{{died: true}, {died: true}}, nil, nil},
		"once":           {[]step{{reading: [2]int64{0, 50}, died: true}}, r(0, 50), nil},
		"done in time":   {[]step{{reading: [2]int64{0, 50}, read: [2]int64{0, 50}, died: true}}, nil, nil},
		"twice":          {[]step{{reading: [2]int64{0, 50}, died: true}, {reading: [2]int64{10, 20}, died: true}}, r(0, 50), []wire.Range{*r(10, 20)}},
		"other chunks":   {[]step{{reading: [2]int64{0, 50}, died: true}, {reading: [2]int64{40, 90}, died: true}}, r(0, 50), []wire.Range{*r(40, 50)}},
		"elsewhere":      {[]step{{reading: [2]int64{0, 50}, died: true}, {reading: [2]int64{50, 90}, died: true}}, r(50, 90), nil},
		"passed at last": {[]step{{reading: [2]int64{0, 50}, died: true}, {read: [2]int64{0, 50}}, {died: true}}, nil, nil},
	}
	for name, c := range cases {
		var f facts
		f.begin(1)
		for _, s := range c.steps {
			if s.reading[1] > 0 {
				f.startReading(wire.Range{Attempt: 1, From: s.reading[0], To: s.reading[1]})
			}
			if s.read[1] > 0 {
				f.doneReading(1, s.read[1])
			}
			if s.died {
				f.supervisorDied(time.Now())
			}
		}
		if d := cmp.Diff(c.suspect, f.Suspect); d != "" {
			t.Errorf("%s: suspect: %s", name, d)
		}
		if d := cmp.Diff(c.skip, f.Skip); d != "" {
			t.Errorf("%s: skip: %s", name, d)
		}
	}
}

// Five deaths in half a minute without progress, and not one less.
func TestGivingUp(t *testing.T) {
	start := time.Now()
	die := func(f *facts, after ...time.Duration) (givenUp bool) {
		for _, d := range after {
			_, givenUp = f.supervisorDied(start.Add(d))
		}
		return givenUp
	}
	var fast, slow, going facts
	fast.begin(1)
	if die(&fast, 0, 1e9, 2e9, 3e9) || !die(&fast, 4e9) {
		t.Error("five fast deaths are not five")
	}
	slow.begin(1)
	if die(&slow, 0, 10e9, 20e9, 30e9, 40e9, 50e9, 60e9) {
		t.Error("rare deaths are taken for a loop")
	}
	going.begin(1)
	for i := range 20 {
		going.doneReading(1, int64(i+1))
		if die(&going, time.Duration(i)*1e9) {
			t.Error("a supervisor that gets on is given up")
		}
	}
}

// An outlet writes lines of our own only where a line of the server has ended,
// and changes no byte of the server's.
func TestOutletKeepsLinesApart(t *testing.T) {
	defer goleak.VerifyNone(t)
	rapid.Check(t, func(t *rapid.T) {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer read.Close()
		o := newOutlet(write, "test", nil, func(string) {})
		s := newSpool(1)
		s.unkept()
		o.show(s, both)
		var want bytes.Buffer
		lines := 0
		for i, n := range rapid.SliceOfN(rapid.IntRange(1, 300), 1, 40).Draw(t, "pieces") {
			p := []byte(strings.Repeat("x", n) + rapid.SampledFrom([]string{"", "\n", "\r", "\nab"}).Draw(t, "end"))
			want.Write(p)
			s.add(p, both)
			if i%3 == 0 {
				o.print(fmt.Sprintf("OWN %d", lines))
				lines++
			}
		}
		s.end(false)
		o.stop()
		<-o.done
		write.Close()
		got, _ := io.ReadAll(read)
		own := 0
		rest := got
		for own < lines {
			i := bytes.Index(rest, fmt.Appendf(nil, "OWN %d\n", own))
			if i < 0 {
				t.Fatalf("line %d of ours is missing in %q", own, got)
			}
			if at := len(got) - len(rest) + i; at > 0 && got[at-1] != '\n' {
				t.Fatalf("line %d of ours is in a line: %q", own, excerptOf(got, at))
			}
			rest = rest[i:]
			own++
		}
		var server []byte
		for line := range bytes.Lines(got) {
			if !bytes.HasPrefix(line, []byte("OWN ")) {
				server = append(server, line...)
			}
		}
		if !bytes.Equal(bytes.ReplaceAll(server, []byte("\n"), nil), bytes.ReplaceAll(want.Bytes(), []byte("\n"), nil)) {
			t.Fatalf("the server's bytes changed: %q, want %q", server, want.Bytes())
		}
	})
}

// A line of ours that has found its place delays nothing of what the server has begun
// behind it.
func TestOutletGoesOnBehindALineOfOurs(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	synctest.Test(t, func(t *testing.T) {
		o, s := newOutlet(write, "test", nil, func(string) {}), newSpool(1)
		s.unkept()
		o.show(s, both)
		s.add([]byte("x"), both)
		synctest.Wait()
		o.print("OWN")
		synctest.Wait()
		s.add([]byte("\nab"), both)
		time.Sleep(2 * gather)
		synctest.Wait()
		if got, want := o.progress(), int64(len("x\nOWN\nab")); got != want {
			t.Errorf("%d bytes are shown, want %d", got, want)
		}
		s.end(false)
		o.stop()
		<-o.done
	})
	write.Close()
	if got, _ := io.ReadAll(read); string(got) != "x\nOWN\nab" {
		t.Errorf("shown: %q", got)
	}
}

func excerptOf(b []byte, at int) []byte { return b[max(0, at-20):min(len(b), at+40)] }
