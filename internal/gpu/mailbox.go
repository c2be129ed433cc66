package gpu

import "sync"

// mailboxBound is how many events wait for a reader that does not come.
const mailboxBound = 256

// mailbox is the queue between a source and its reader. put never blocks: a
// sample takes the place of one that still waits, and when the queue is full
// the oldest event goes.
type mailbox struct {
	mu     sync.Mutex
	queue  []Event
	closed bool
	wake   chan struct{} // capacity 1
	out    chan Event
	quit   chan struct{} // closed by abandon: nobody reads any more
	once   sync.Once
}

func newMailbox() *mailbox {
	m := &mailbox{
		wake: make(chan struct{}, 1),
		out:  make(chan Event),
		quit: make(chan struct{}),
	}
	go m.deliver()
	return m
}

func (m *mailbox) put(e Event) {
	m.mu.Lock()
	if !m.closed {
		m.enqueue(e)
	}
	m.mu.Unlock()
	m.signal()
}

func (m *mailbox) enqueue(e Event) {
	if _, ok := e.(Sample); ok {
		for i, waiting := range m.queue {
			if _, ok := waiting.(Sample); ok {
				m.queue = append(m.queue[:i], m.queue[i+1:]...)
				break
			}
		}
	}
	if len(m.queue) == mailboxBound {
		m.queue = m.queue[1:]
	}
	m.queue = append(m.queue, e)
}

// close lets the reader take what waits, then closes the channel.
func (m *mailbox) close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.signal()
}

// abandon closes the channel though something may wait.
func (m *mailbox) abandon() {
	m.once.Do(func() { close(m.quit) })
	m.close()
}

func (m *mailbox) signal() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *mailbox) deliver() {
	defer close(m.out)
	for {
		e, open := m.next()
		switch {
		case e != nil:
			select {
			case m.out <- e:
			case <-m.quit:
				return
			}
		case !open:
			return
		default:
			<-m.wake
		}
	}
}

func (m *mailbox) next() (e Event, open bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.queue) > 0 {
		e = m.queue[0]
		m.queue = m.queue[1:]
	}
	return e, !m.closed
}
