package patch

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

//go:embed python/locate.py
var locateScript string

//go:embed python/check.py
var checkScript string

// A cold interpreter on a network file system may need long; one that needs
// longer than this is stuck.
const pythonLimit = 90 * time.Second

// maxAnswer bounds what an interpreter may say: a RECORD of 50,000 files fits.
const maxAnswer = 32 << 20

// ask runs a script of ours in the interpreter and decodes its answer. Nothing
// is written: -B keeps even the bytecode of the standard library away.
func (in Interpreter) ask(ctx context.Context, flags []string, script, argument string, stdin io.Reader, answer any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, pythonLimit, fmt.Errorf("it gave no answer within %s", pythonLimit))
	defer cancel()
	args := append(append([]string{}, flags...), "-B", "-c", script)
	if argument != "" {
		args = append(args, argument)
	}
	cmd := exec.CommandContext(ctx, in.Python, args...)
	cmd.Dir, cmd.Env, cmd.Stdin = in.Dir, in.environment(), stdin
	// A wrapper such as a pyenv shim may have children: end them all.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, words := &bounded{limit: maxAnswer}, &bounded{limit: 64 << 10}
	cmd.Stdout, cmd.Stderr = out, words
	err := cmd.Run()
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("cannot ask %q: %w", in.Python, cause)
	}
	if err != nil {
		return fmt.Errorf("cannot ask %q: %w%s", in.Python, err, lastWords(words.buf.Bytes()))
	}
	return decodeAnswer(in.Python, out.buf.Bytes(), answer)
}

func decodeAnswer(python string, out []byte, answer any) error {
	start := bytes.LastIndex(out, []byte("\n\x1e"))
	if start < 0 {
		return fmt.Errorf("cannot ask %q: it does not behave like a Python interpreter", python)
	}
	if err := json.Unmarshal(out[start+2:], answer); err != nil {
		return fmt.Errorf("cannot read the answer of %q: %w", python, err)
	}
	return nil
}

// environment is the server's, without what would make a script interactive.
func (in Interpreter) environment() []string {
	env := in.Env
	if env == nil {
		env = os.Environ()
	}
	clean := make([]string, 0, len(env))
	for _, pair := range env {
		if !strings.HasPrefix(pair, "PYTHONINSPECT=") && !strings.HasPrefix(pair, "PYTHONSTARTUP=") {
			clean = append(clean, pair)
		}
	}
	return clean
}

func lastWords(stderr []byte) string {
	text := strings.TrimSpace(string(stderr))
	if text == "" {
		return ""
	}
	return fmt.Sprintf(" (its last line: %q)", text[strings.LastIndexByte(text, '\n')+1:])
}

// bounded keeps at most limit bytes and refuses more, which ends the writer.
type bounded struct {
	buf   bytes.Buffer
	limit int
}

var errTooMuch = errors.New("it says too much")

func (b *bounded) Write(p []byte) (int, error) {
	if b.buf.Len()+len(p) > b.limit {
		return 0, errTooMuch
	}
	return b.buf.Write(p)
}

// text is one file content to compile.
type text struct {
	Name string `json:"name"`
	Text []byte `json:"text"` // base64 in JSON
}

// compile asks the interpreter whether each text is Python to it. The result is
// one message a text, "" for yes. Isolated mode keeps everything of the site out.
func (in Interpreter) compile(ctx context.Context, texts []text) ([]string, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	question, err := json.Marshal(texts)
	if err != nil {
		return nil, err
	}
	var messages []string
	if err := in.ask(ctx, []string{"-I", "-S"}, checkScript, "", bytes.NewReader(question), &messages); err != nil {
		return nil, err
	}
	if len(messages) != len(texts) {
		return nil, fmt.Errorf("cannot read the answer of %q: %d messages for %d texts", in.Python, len(messages), len(texts))
	}
	return messages, nil
}
