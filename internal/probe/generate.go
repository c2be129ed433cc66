package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"

	"sglaunch/internal/mask"
	"sglaunch/internal/probe/answers"
)

// generator asks one server for generations, in the way that it has been found
// to understand.
type generator struct {
	prober   *Prober
	model    string // as /v1/models names it
	logprobs bool   // it may be asked for probabilities, and has not refused them
	openai   bool   // there is no /generate
}

// maxAnswers bounds one answer of a whole batch: 32 answers of 1024 tokens with
// their probabilities take some 2 MB.
const maxAnswers = 64 << 20

// statusError is an answer that is no 200.
type statusError struct {
	path   string
	status int
	text   string
}

func (e *statusError) Error() string {
	text := fmt.Sprintf("%s answers %d", e.path, e.status)
	if e.text != "" {
		text += ": " + e.text
	}
	return text
}

// failed reports whether the server did not understand a request, or could not do
// it. A probability that is no number is one of those that many a server cannot put
// into JSON: it answers 500.
func failed(err error) bool {
	var s *statusError
	return errors.As(err, &s) && (s.status == http.StatusBadRequest || s.status == http.StatusUnprocessableEntity || s.status >= http.StatusInternalServerError)
}

// broken reports whether the server itself failed at what it was asked: not a refusal
// (4xx), not a server that is full or ending (503), nor a proxy's word (502, 504). SGLang
// gives a 500 for a request that its scheduler aborted, and for every exception that
// nobody has thought of (read in v0.5.9).
func broken(err error) bool {
	var s *statusError
	return errors.As(err, &s) && s.status == http.StatusInternalServerError
}

// isAnswer reports whether the server answered at all, if only to refuse.
func isAnswer(err error) bool {
	var s *statusError
	return err == nil || errors.As(err, &s)
}

func absent(err error) bool {
	var s *statusError
	return errors.As(err, &s) && (s.status == http.StatusNotFound || s.status == http.StatusMethodNotAllowed)
}

// generate asks for one batch. A server that fails at the same prompts twice has
// answered them: what its clients will get is that fault.
func (g *generator) generate(ctx context.Context, prompts []string, tokens int) ([]answers.Answer, error) {
	said, err := g.ask(ctx, prompts, tokens)
	if broken(err) {
		said, err = g.ask(ctx, prompts, tokens)
	}
	switch {
	case broken(err):
		return slices.Repeat([]answers.Answer{{Failed: err.Error()}}, len(prompts)), nil
	case err == nil && len(said) != len(prompts):
		err = fmt.Errorf("%d answers to %d prompts", len(said), len(prompts))
	}
	return said, err
}

// ask asks for one batch once. Probabilities are more than every server tells, and so
// is its own endpoint.
func (g *generator) ask(ctx context.Context, prompts []string, tokens int) (said []answers.Answer, err error) {
	if !g.openai {
		said, err = g.native(ctx, prompts, tokens)
		if g.logprobs && failed(err) {
			g.logprobs = false
			said, err = g.native(ctx, prompts, tokens)
		}
		g.openai = absent(err)
	}
	if g.openai {
		said, err = g.completions(ctx, prompts, tokens)
	}
	return said, err
}

// native speaks SGLang's own /generate.
func (g *generator) native(ctx context.Context, prompts []string, tokens int) ([]answers.Answer, error) {
	request := map[string]any{
		"text":            prompts,
		"sampling_params": map[string]any{"temperature": 0, "max_new_tokens": tokens},
	}
	if g.logprobs {
		request["return_logprob"] = true
	}
	var replies []nativeReply
	if err := g.post(ctx, "/generate", request, &replies); err != nil {
		return nil, err
	}
	var said []answers.Answer
	for _, r := range replies {
		said = append(said, r.answer())
	}
	return said, nil
}

type nativeReply struct {
	Text      string `json:"text"`
	OutputIDs []int  `json:"output_ids"`
	Meta      struct {
		Tokens   int                 `json:"completion_tokens"`
		Logprobs [][]json.RawMessage `json:"output_token_logprobs"` // [logprob, id, text]
	} `json:"meta_info"`
}

func (r nativeReply) answer() answers.Answer {
	a := answers.Answer{Text: r.Text, Tokens: r.OutputIDs, Count: r.Meta.Tokens}
	var ids []int
	for _, entry := range r.Meta.Logprobs {
		if len(entry) == 0 {
			continue
		}
		a.Logprobs = append(a.Logprobs, number(entry[0]))
		var id int
		if len(entry) > 1 && json.Unmarshal(entry[1], &id) == nil {
			ids = append(ids, id)
		}
	}
	if told := len(ids) == len(a.Logprobs) && len(ids) >= a.Count; told && len(a.Tokens) == 0 { // some tell the first alone
		a.Tokens = ids
	}
	return a
}

// number reads a probability. JSON has no word for one that is not finite; SGLang
// writes null.
func number(raw json.RawMessage) float64 {
	var f *float64
	if json.Unmarshal(raw, &f) != nil || f == nil {
		return math.NaN()
	}
	return *f
}

// completions speaks the OpenAI form, which tells texts alone.
func (g *generator) completions(ctx context.Context, prompts []string, tokens int) ([]answers.Answer, error) {
	request := map[string]any{"model": g.model, "prompt": prompts, "temperature": 0, "max_tokens": tokens}
	var reply struct {
		Choices []struct {
			Index int    `json:"index"`
			Text  string `json:"text"`
		} `json:"choices"`
		Usage struct {
			Tokens int `json:"completion_tokens"`
		} `json:"usage"`
	}
	if err := g.post(ctx, "/v1/completions", request, &reply); err != nil {
		return nil, err
	}
	said := make([]answers.Answer, len(reply.Choices))
	for i, c := range reply.Choices {
		said[i] = answers.Answer{Text: c.Text, Count: reply.Usage.Tokens / len(reply.Choices)}
	}
	return said, nil
}

func (g *generator) post(ctx context.Context, path string, request, reply any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	response, err := g.prober.request(ctx, http.MethodPost, path, body)
	if err != nil {
		return err
	}
	return decode(response, path, maxAnswers, reply)
}

// errorShown is how much of a refusal is told.
const errorShown = 200

// decode reads the JSON of a 200 and closes the answer.
func decode(response *http.Response, path string, most int64, into any) error {
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, errorShown))
		return &statusError{path, response.StatusCode, mask.String(string(bytes.ToValidUTF8(bytes.TrimSpace(text), nil)))}
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, most))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		if err := json.Unmarshal(withoutNaN(data), into); err != nil {
			return fmt.Errorf("%s answers what cannot be read: %w", path, err)
		}
	}
	return nil
}

// withoutNaN turns the words NaN, Infinity and -Infinity, which Python writes
// into JSON, into null. Texts are left alone.
func withoutNaN(data []byte) []byte {
	var out bytes.Buffer
	inside := false
	for i := 0; i < len(data); i++ {
		c := data[i]
		if inside && c == '\\' && i+1 < len(data) {
			out.Write(data[i : i+2])
			i++
			continue
		}
		if c == '"' {
			inside = !inside
		}
		if word := notANumber(data[i:]); !inside && word > 0 {
			out.WriteString("null")
			i += word - 1
			continue
		}
		out.WriteByte(c)
	}
	return out.Bytes()
}

func notANumber(data []byte) int {
	for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(data, []byte(word)) {
			return len(word)
		}
	}
	return 0
}
