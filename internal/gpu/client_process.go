package gpu

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// samplerProcess is a running sampler.
type samplerProcess struct {
	cmd     *exec.Cmd
	in      *os.File // our end of its standard input
	answers chan answer
	ended   chan string   // once, why; after the last answer
	unread  chan struct{} // closed when nobody takes answers any more
}

// sendLimit bounds a write to a sampler that does not read.
const sendLimit = time.Second

// startSampler starts the process. Its process group is its own, so that a
// Ctrl-C of the terminal does not reach it; if we die, it sees its input end.
func startSampler(argv, env []string) (*samplerProcess, error) {
	if len(argv) == 0 {
		return nil, errors.New("cannot start the NVML sampler: no command given")
	}
	stdin, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cannot start the NVML sampler: %w", err)
	}
	defer stdin.Close()
	p := &samplerProcess{
		cmd:     exec.Command(argv[0], argv[1:]...),
		in:      in,
		answers: make(chan answer),
		ended:   make(chan string, 1),
		unread:  make(chan struct{}),
	}
	complaints := &head{}
	p.cmd.Env = env
	p.cmd.Stdin = stdin
	p.cmd.Stderr = complaints
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.WaitDelay = time.Second
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		in.Close()
		return nil, fmt.Errorf("cannot start the NVML sampler: %w", err)
	}
	go p.follow(out, complaints)
	return p, nil
}

// follow reads answers until the output ends, then waits for the process.
func (p *samplerProcess) follow(out io.ReadCloser, complaints *head) {
	err := p.read(out)
	if err != nil {
		// It speaks another language, or nobody listens: no use to it either.
		p.in.Close()
		p.cmd.Process.Signal(syscall.SIGTERM)
		out.Close()
	}
	status := p.cmd.Wait()
	p.in.Close()
	p.ended <- ending(status, err, complaints.String())
}

// errUnread ends the reading of a sampler that was given up.
var errUnread = errors.New("nobody takes its answers")

func (p *samplerProcess) read(out io.Reader) error {
	lines := bufio.NewScanner(out)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	for lines.Scan() {
		var a answer
		if json.Unmarshal(lines.Bytes(), &a) != nil {
			return fmt.Errorf("cannot read what the NVML sampler says: %.100q", lines.Bytes())
		}
		select {
		case p.answers <- a:
		case <-p.unread:
			return errUnread
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return errTooLong
	}
	return nil
}

// ending puts into words how a sampler ended.
func ending(status, read error, complaints string) string {
	if read != nil {
		return read.Error()
	}
	words := "the NVML sampler ended by itself"
	if status != nil {
		words = "the NVML sampler ended: " + status.Error()
	}
	if complaints != "" {
		words += ": " + complaints
	}
	return words
}

// send writes a command. One that cannot be written is dropped: the sampler
// is hanging or gone, and both are told elsewhere.
func (p *samplerProcess) send(w command) {
	line, err := json.Marshal(w)
	if err != nil {
		return
	}
	p.in.SetWriteDeadline(time.Now().Add(sendLimit))
	p.in.Write(append(line, '\n'))
}

// end asks the process to go, twice, and then leaves it to itself: what hangs
// in the driver does not die of SIGKILL either, and what only seems to hang
// could take the GPU with it.
func (p *samplerProcess) end(grace time.Duration, hanging *pending) error {
	p.in.Close()
	if p.gone(grace) {
		return nil
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	if p.gone(grace) {
		return nil
	}
	close(p.unread)
	call := "a driver call"
	if hanging != nil {
		call = hanging.String()
	}
	return fmt.Errorf("cannot end the NVML sampler, pid %d: %s has not come back", p.cmd.Process.Pid, call)
}

// gone waits for the process's end, dropping its answers.
func (p *samplerProcess) gone(limit time.Duration) bool {
	over := time.NewTimer(limit)
	defer over.Stop()
	for {
		select {
		case <-p.answers:
		case <-p.ended:
			return true
		case <-over.C:
			return false
		}
	}
}

// head keeps the first words of what a process complained about: of a panic
// and of the loader they say what happened.
type head struct {
	mu   sync.Mutex
	text []byte
}

// headBound is enough for either.
const headBound = 2 << 10

// Write takes all, and keeps what fits.
func (h *head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text = append(h.text, p[:min(len(p), headBound-len(h.text))]...)
	return len(p), nil
}

func (h *head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(strings.Fields(string(h.text)), " ")
}
