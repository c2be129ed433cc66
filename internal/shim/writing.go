package shim

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// How an outlet writes to somebody who may not take it: a terminal that was
// stopped, a pipe that nobody reads or that was closed, a file on a full disk.

// write writes everything, however long the reader takes. A disk that is full is
// tried again and again. Once nobody can read any more the bytes go nowhere: the
// log has them.
func (o *outlet) write(p []byte) {
	for len(p) > 0 && o.closed == nil {
		o.offer(len(p))
		n, err := unix.Write(o.fd, p)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN: // somebody else made our terminal non-blocking
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(o.fd), Events: unix.POLLOUT}}, 1000)
		case noRoom(err):
			o.stuck(fmt.Sprintf("cannot write to %s: %v", o.name, err))
			time.Sleep(retryDisk)
		case err != nil:
			o.close(err)
		default:
			p = p[n:]
			o.took(n)
		}
	}
}

// noRoom tells errors that go once somebody makes room.
func noRoom(err error) bool {
	return err == unix.ENOSPC || err == unix.EDQUOT || err == unix.EFBIG
}

// offer says that n bytes are to be written.
func (o *outlet) offer(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pending = n
	if o.since.IsZero() {
		o.since = time.Now()
	}
}

// took says that n bytes were written.
func (o *outlet) took(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.written += int64(n)
	o.pending, o.since = 0, time.Time{}
}

func (o *outlet) close(err error) {
	o.mu.Lock()
	o.closed, o.told = err, false
	o.pending, o.since = 0, time.Time{}
	o.mu.Unlock()
	o.news(fmt.Sprintf("cannot write to %s any more: %v; the log goes on", o.name, err))
}

// progress is how many bytes have been written.
func (o *outlet) progress() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.written
}

// unread is how many bytes have not been written yet.
func (o *outlet) unread() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := int64(o.pending)
	for _, f := range o.feeds {
		n += f.spool.left(f.offset, f.lane)
	}
	return n
}

// blockedAfter is how long a write is pending before that is news.
const blockedAfter = 10 * time.Second

// look tells when the reader has stopped reading and when it goes on.
func (o *outlet) look() {
	o.mu.Lock()
	again := o.told && o.since.IsZero()
	o.told = o.told && !again
	late := !o.since.IsZero() && time.Since(o.since) > blockedAfter
	o.mu.Unlock()
	switch {
	case again:
		o.news(o.name + " takes output again")
	case late:
		o.stuck("nobody reads " + o.name)
	}
}

// stuck tells once why nothing gets on.
func (o *outlet) stuck(why string) {
	o.mu.Lock()
	told := o.told
	o.told = true
	o.mu.Unlock()
	if !told {
		o.news(why + "; what it has not taken waits in the log")
	}
}

// lookAtFlush is the pause between two looks at what a stopped outlet has written.
const lookAtFlush = 200 * time.Millisecond

// awaitEnd waits for a stopped outlet, as long as its reader takes something
// now and then, and reports whether everything was taken.
func (o *outlet) awaitEnd(patience func() time.Duration) bool {
	before, since := o.progress(), time.Now()
	for {
		select {
		case <-o.done:
			return true
		case <-time.After(lookAtFlush):
		}
		if written := o.progress(); written != before {
			before, since = written, time.Now()
		} else if time.Since(since) > patience() {
			return false
		}
	}
}
