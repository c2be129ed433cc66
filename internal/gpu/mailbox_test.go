package gpu

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// Whatever is put and however slowly it is taken: the order holds, nothing but
// samples is lost as long as the bound is not reached, of samples the newest
// comes through, and put never waits.
func TestMailbox(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMailbox()
		put := rapid.SliceOfN(rapid.Bool(), 0, mailboxBound/2).Draw(t, "puts")
		var xids, samples int
		for _, sample := range put {
			if sample {
				samples++
				m.put(Sample{Code: samples})
			} else {
				xids++
				m.put(Xid{Code: xids})
			}
		}
		m.close()
		var lastXid, lastSample int
		for e := range m.out {
			switch e := e.(type) {
			case Xid:
				if e.Code != lastXid+1 {
					t.Fatalf("Xid %d follows %d", e.Code, lastXid)
				}
				lastXid = e.Code
			case Sample:
				if e.Code <= lastSample {
					t.Fatalf("sample %d follows %d", e.Code, lastSample)
				}
				lastSample = e.Code
			}
		}
		if lastXid != xids || lastSample != samples {
			t.Fatalf("got Xid %d of %d and sample %d of %d", lastXid, xids, lastSample, samples)
		}
	})
}

func TestMailboxIsBounded(t *testing.T) {
	m := newMailbox()
	const many = 10 * mailboxBound
	for i := range many {
		m.put(Xid{Code: i + 1})
	}
	m.close()
	n, last := 0, 0
	for e := range m.out {
		n, last = n+1, e.(Xid).Code
	}
	if n > mailboxBound+1 || last != many {
		t.Errorf("%d events waited, the last was %d of %d", n, last, many)
	}
	m.put(Xid{}) // after the end: no panic
}

func TestAbandonedMailbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMailbox()
		for range 3 {
			m.put(Xid{})
		}
		synctest.Wait()
		m.abandon()
		m.abandon()
		synctest.Wait() // its goroutine has ended, or synctest complains
	})
}

func TestAbsentAndFake(t *testing.T) {
	a := Absent("no driver here")
	if e := <-a.Events(); e != (SourceAbsent{Reason: "no driver here"}) {
		t.Errorf("got %+v", e)
	}
	a.Pace(time.Second)
	if _, err := a.Snapshot(context.Background()); !errors.Is(err, ErrAbsent) {
		t.Errorf("got %v", err)
	}
	a.Close()
	if _, open := <-a.Events(); open {
		t.Error("something follows")
	}
	var source Source = NewFake()
	f := source.(*Fake)
	if _, err := f.Snapshot(context.Background()); !errors.Is(err, ErrAbsent) {
		t.Errorf("got %v", err)
	}
	f.Put(Sample{Code: 7})
	f.Pace(time.Minute)
	if s, err := f.Snapshot(context.Background()); s.Code != 7 || err != nil || f.Interval() != time.Minute {
		t.Errorf("got %+v, %v", s, err)
	}
	if e := <-f.Events(); e.(Sample).Code != 7 {
		t.Errorf("got %+v", e)
	}
	f.Close()
}
