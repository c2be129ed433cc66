package wire

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// MaxFrame bounds one frame; a larger announced length means a broken peer.
const MaxFrame = 4 << 20

const (
	kindControl = 1
	kindOutput  = 2
)

// keepFrame bounds the memory that a connection keeps for the next frame.
const keepFrame = 512 << 10

// Conn frames messages on a stream. Send and SendOutput may be called from
// several goroutines; Receive from one.
type Conn struct {
	stream io.ReadWriteCloser
	in     *bufio.Reader // small frames need no read of their own
	got    []byte        // the frame received last

	mu  sync.Mutex
	out []byte // the frame sent last
}

// NewConn frames messages on stream. It may read ahead: nobody else reads it.
func NewConn(stream io.ReadWriteCloser) *Conn {
	return &Conn{stream: stream, in: bufio.NewReaderSize(stream, 4<<10)}
}

// Close closes the stream; a pending Receive returns an error.
func (c *Conn) Close() error { return c.stream.Close() }

// Send writes one control message.
func (c *Conn) Send(m Message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("cannot encode message %q: %w", m.Type, err)
	}
	return c.write(kindControl, nil, body)
}

// SendOutput writes one stretch of output; it must be shorter than MaxFrame.
func (c *Conn) SendOutput(o Output) error {
	head := make([]byte, 12)
	binary.BigEndian.PutUint32(head, uint32(o.Attempt))
	binary.BigEndian.PutUint64(head[4:], uint64(o.Offset))
	return c.write(kindOutput, head, o.Data)
}

func (c *Conn) write(kind byte, head, body []byte) error {
	size := len(head) + len(body)
	if size > MaxFrame {
		return fmt.Errorf("cannot send a frame of %d bytes: the bound is %d", size, MaxFrame)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	frame := binary.BigEndian.AppendUint32(c.out[:0], uint32(size))
	frame = append(frame, kind)
	frame = append(append(frame, head...), body...)
	if cap(frame) <= keepFrame {
		c.out = frame
	}
	_, err := c.stream.Write(frame)
	return err
}

// Receive reads one frame: a control message, or output (then the message is
// nil), whose data is valid until the next call. It returns io.EOF when the peer
// is gone.
func (c *Conn) Receive() (*Message, *Output, error) {
	var head [5]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return nil, nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > MaxFrame {
		return nil, nil, fmt.Errorf("cannot read a frame of %d bytes: the bound is %d", size, MaxFrame)
	}
	body := c.room(int(size))
	if _, err := io.ReadFull(c.in, body); err != nil {
		return nil, nil, fmt.Errorf("cannot read a frame: %w", err)
	}
	switch head[4] {
	case kindControl:
		var m Message
		if err := json.Unmarshal(body, &m); err != nil {
			return nil, nil, fmt.Errorf("cannot decode a message: %w", err)
		}
		return &m, nil, nil
	case kindOutput:
		if size < 12 {
			return nil, nil, fmt.Errorf("cannot read output: frame of %d bytes", size)
		}
		return nil, &Output{
			Attempt: int(binary.BigEndian.Uint32(body)),
			Offset:  int64(binary.BigEndian.Uint64(body[4:])),
			Data:    body[12:],
		}, nil
	}
	return nil, nil, fmt.Errorf("cannot read a frame of kind %d: a newer peer", head[4])
}

// room is memory for a frame: the same again, unless the frame is unusually large.
func (c *Conn) room(size int) []byte {
	if size > keepFrame {
		return make([]byte, size)
	}
	if size > cap(c.got) {
		c.got = make([]byte, size)
	}
	return c.got[:size]
}
