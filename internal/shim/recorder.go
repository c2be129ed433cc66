package shim

import (
	"fmt"
	"time"
)

const (
	retryDisk  = time.Second // between two tries on a disk that refuses
	holesKept  = 1024
	recordSize = 256 << 10 // bytes a write
)

// record writes the spool's output into its log, at the offsets that the output
// has: a stretch that the disk missed stays a hole, and what follows is where it
// belongs. It runs in a goroutine of its own, since a disk may hang, and ends
// when all is written after the end of the output. Trouble is told in words.
func (s *spool) record(trouble func(string)) {
	wake := newBell()
	s.listen(wake)
	defer s.unlisten(wake)
	defer close(s.sealed)
	buf := make([]byte, recordSize)
	news := diskNews{trouble: trouble}
	for {
		n, at, lost, over := s.unrecorded(buf)
		if n == 0 {
			if news.missed += lost; over {
				break
			}
			<-wake
			continue
		}
		k, err := s.log.WriteAt(buf[:n], at)
		s.advance(at+int64(k), err != nil)
		news.tell(lost, err)
		if err != nil {
			if s.over() {
				break
			}
			time.Sleep(retryDisk)
		} else if n < len(buf) && !over { // all there was
			<-wake
		}
	}
	s.sealLog(&news)
}

// diskNews tells of a disk that refuses or loses bytes: when it begins, when it
// is over, and not more often than every newsEvery.
type diskNews struct {
	trouble func(string)
	refused error
	missed  int64
	told    time.Time
}

const newsEvery = 10 * time.Second

func (d *diskNews) tell(lost int64, err error) {
	d.missed += lost
	if err != nil && d.refused == nil {
		d.trouble(fmt.Sprintf("cannot write the log: %v; the server goes on, memory holds its last %d MiB", err, ringSize>>20))
	}
	again := err == nil && d.refused != nil
	if again || err == nil && d.missed > 0 && time.Since(d.told) > newsEvery {
		d.trouble(fmt.Sprintf("the log is written again; it lacks %d bytes", d.missed))
		d.missed, d.told = 0, time.Now()
	}
	d.refused = err
}

// unrecorded copies what the log does not have yet. What has left the memory
// meanwhile becomes a hole.
func (s *spool) unrecorded(buf []byte) (n int, at, lost int64, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.recorded < s.from {
		lost = s.from - s.recorded
		s.addHole(span{s.recorded, s.from})
		s.recorded = s.from
	}
	if s.recorded < s.to {
		n = s.copyOut(buf[:min(int64(len(buf)), s.to-s.recorded)], s.recorded)
	}
	return n, s.recorded, lost, s.ended
}

func (s *spool) addHole(h span) {
	if n := len(s.holes); n > 0 && (s.holes[n-1].to == h.from || n == holesKept) {
		s.holes[n-1].to = h.to
		return
	}
	s.holes = append(s.holes, h)
}

func (s *spool) advance(recorded int64, failed bool) {
	s.mu.Lock()
	if recorded > s.recorded {
		s.recorded = recorded
	}
	s.lame = failed
	s.mu.Unlock()
	s.progress.ring()
}

func (s *spool) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// sealLog makes the record safe against a power cut and, where it is complete,
// gives the memory back.
func (s *spool) sealLog(news *diskNews) {
	if err := s.log.Sync(); err != nil && news.refused == nil {
		news.trouble(fmt.Sprintf("cannot sync the log: %v", err))
	}
	s.mu.Lock()
	last := s.to - s.recorded
	s.mu.Unlock()
	if news.missed += last; news.missed > 0 {
		news.trouble(fmt.Sprintf("the log is closed; it lacks %d bytes, %d of them at its end", news.missed, last))
	}
	if last == 0 {
		s.forget()
	}
}
