package probe

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Answer is what one probe saw.
type Answer struct {
	At       time.Time
	Took     time.Duration
	Endpoint string // path asked last
	Status   int    // HTTP status; 0 where there was none
	Refused  bool   // nobody listens: the HTTP server is not up
	Err      string // why there is no status; "" with one

	Serving Serving
}

// Serving is what an answer means, by what its endpoint is known to do.
type Serving string

// The values of Serving.
const (
	Down     Serving = "down"     // nobody listens
	Starting Serving = "starting" // HTTP is up, and says that the server is not ready, or ill, or ending
	Failing  Serving = "failing"  // no answer in time, a connection that was cut, or a fault of the server's own (5xx)
	Early    Serving = "early"    // a 200 that is given before the server is ready, too
	Up       Serving = "up"       // a 200 that proves that the server is ready
	Unclear  Serving = "unclear"  // it proves nothing: we were refused (4xx), sent elsewhere, or do not understand each other (TLS)
)

const (
	defaultLimit = 25 * time.Second
	maxBody      = 1 << 20 // of an answer; /get_server_info of a large server takes some 20 KB
	infoLimit    = 5 * time.Second
)

// Prober probes one server. Its methods may be called from any goroutine.
type Prober struct {
	options Options
	base    *url.URL
	bad     error
	client  *http.Client
	turn    chan struct{} // capacity 1: held by the probe in flight
	health  honesty       // of the one whose turn it is
	model   bool          // it was asked whether it may be asked for a generation; of the same
}

// New returns a prober. That a URL cannot be used is told by each answer.
func New(o Options) *Prober {
	if o.Limit <= 0 {
		o.Limit = defaultLimit
	}
	p := &Prober{options: o, turn: make(chan struct{}, 1), health: honestyOf(o.Version)}
	p.base, p.bad = url.Parse(o.URL)
	if p.bad == nil && (p.base.Host == "" || p.base.Scheme != "http" && p.base.Scheme != "https") {
		p.bad = fmt.Errorf("cannot probe %q: it is no http or https URL with a host", o.URL)
	}
	if o.Static || o.Follower {
		p.health = static
	}
	p.client = newClient(p.base, o.Own)
	return p
}

// newClient goes straight to the server: a proxy would answer for it, and a
// redirect leads to somebody else.
func newClient(base *url.URL, own bool) *http.Client {
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext:       (&net.Dialer{}).DialContext,
	}
	if own || loopback(base) {
		// A certificate names the server for others. Between two processes of
		// one machine there is nobody to be mistaken for.
		transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func loopback(base *url.URL) bool {
	if base == nil {
		return false
	}
	ip, err := netip.ParseAddr(base.Hostname())
	return base.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}

// Probe asks once. Callers wait for one another, so that there is never more
// than one probe in flight; waiting counts into the caller's context, not into
// the limit.
func (p *Prober) Probe(ctx context.Context) Answer { return p.inTurn(ctx, p.ask) }

// Alive asks a server in service once. Where a generation of ours could harm it,
// or is none, no endpoint is asked that generates: then the answer proves no
// more than that HTTP is up.
func (p *Prober) Alive(ctx context.Context) Answer { return p.inTurn(ctx, p.askServing) }

func (p *Prober) inTurn(ctx context.Context, ask func(context.Context) Answer) Answer {
	at := time.Now()
	if p.bad != nil {
		return Answer{At: at, Err: p.bad.Error(), Serving: Unclear}
	}
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return Answer{At: at, Err: "cannot probe: the last probe has not ended", Serving: Unclear}
	}
	ctx, cancel := context.WithTimeout(ctx, p.options.Limit)
	defer cancel()
	a := ask(ctx)
	a.At, a.Took = at, time.Since(at)
	return a
}

// ask gets the endpoint that says most, and a second one where the first
// leaves it open. A prefill or decode node is asked as well: an honest /health generates
// nothing until the node is ready, and then what needs no peer (sglang pull 8444).
func (p *Prober) ask(ctx context.Context) Answer {
	if p.ownEndpoint() {
		return given(p.get(ctx, p.base.Path))
	}
	a := p.get(ctx, "/health")
	switch {
	case a.Status == http.StatusNotFound:
		return open(p.get(ctx, "/v1/models"))
	case a.Status != http.StatusOK:
		return a
	}
	if p.health == unknown {
		p.health = honestyOf(p.info(ctx).Version)
	}
	switch {
	case p.health == honest:
		a.Serving = Up
	case p.health == static || p.options.NoGenerate != "":
		a.Serving = Early
	default: // nobody knows what this /health is worth; a generated token is proof in any version
		return given(p.get(ctx, "/health_generate"))
	}
	return a
}

// askServing leaves every generating endpoint of a server alone that must not be
// asked for a generation. /health is one, since v0.4.10.post2.
func (p *Prober) askServing(ctx context.Context) Answer {
	if !p.model && p.options.NoGenerate == "" && !p.ownEndpoint() {
		p.model = true
		if generates, known := p.generates(ctx); known && !generates {
			p.options.NoGenerate = noGeneration
		} else {
			p.options.NoGenerate = routed(p.info(ctx).Disaggregation)
		}
	}
	if p.options.NoGenerate != "" && !p.ownEndpoint() {
		return open(p.get(ctx, "/v1/models"))
	}
	return p.ask(ctx)
}

// ownEndpoint reports whether a person named the one endpoint to ask.
func (p *Prober) ownEndpoint() bool { return p.base.Path != "" && p.base.Path != "/" }

// given judges an endpoint whose 200 is proof.
func given(a Answer) Answer {
	if a.Status == http.StatusOK {
		a.Serving = Up
	}
	return a
}

// open judges an endpoint whose 200 shows no more than that HTTP is up.
func open(a Answer) Answer {
	if a.Status == http.StatusOK {
		a.Serving = Early
	}
	return a
}

// get asks one endpoint. A 200 is left for the caller to judge.
func (p *Prober) get(ctx context.Context, path string) Answer {
	a := Answer{Endpoint: path, Serving: Unclear}
	response, err := p.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		a.Refused = errors.Is(err, syscall.ECONNREFUSED)
		switch {
		case a.Refused:
			a.Serving = Down
		case cut(err):
			a.Serving = Failing
		}
		a.Err = p.reason(ctx, err)
		return a
	}
	defer response.Body.Close()
	io.Copy(io.Discard, io.LimitReader(response.Body, maxBody))
	a.Status = response.StatusCode
	switch {
	case a.Status == http.StatusServiceUnavailable:
		a.Serving = Starting
	case a.Status >= http.StatusInternalServerError:
		a.Serving = Failing
	}
	return a
}

// cut reports whether whoever took the connection let it go without an answer, or
// gave none in time. All else that may fail on the way to an answer is no matter of
// the server's health: a certificate, a name, another protocol.
func cut(err error) bool {
	for _, e := range []error{context.DeadlineExceeded, syscall.ECONNRESET, syscall.EPIPE, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// keyless endpoints get no key: the fewer places a secret goes to, the better.
var keyless = []string{"/health", "/health_generate"}

func (p *Prober) request(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	u := *p.base
	u.Path = path
	request, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	request.Header.Set("User-Agent", "sglaunch")
	if p.options.APIKey != "" && !slices.Contains(keyless, path) {
		request.Header.Set("Authorization", "Bearer "+p.options.APIKey)
	}
	return p.client.Do(request)
}

// reason says why there was no answer, without the URL that every error of
// net/http repeats.
func (p *Prober) reason(ctx context.Context, err error) string {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Sprintf("no answer within %v", p.options.Limit)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	}
	return err.Error()
}

// told is what a server says of itself, as far as it matters here.
type told struct {
	Version        string  `json:"version"`
	Disaggregation string  `json:"disaggregation_mode"`
	Speculation    *string `json:"speculative_algorithm"`
}

func (t told) speculates() bool { return t.Speculation != nil && *t.Speculation != "" }

// info asks the server what it is; empty where it does not say so. A server that
// hangs leaves it open.
func (p *Prober) info(ctx context.Context) (t told) {
	for _, path := range []string{"/server_info", "/get_server_info"} {
		if err := p.fetch(ctx, path, &t); err == nil && t != (told{}) || !isAnswer(err) {
			break
		}
	}
	t.Version = strings.TrimSpace(t.Version)
	return t
}
