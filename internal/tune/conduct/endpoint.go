package conduct

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sglaunch/internal/probe"
	"sglaunch/internal/sglangcmd"
	"sglaunch/internal/visible"
)

// endpoint is the HTTP side of the server that is measured.
type endpoint struct {
	base    string // http://127.0.0.1:30000
	key     string // a secret
	http    *http.Client
	options probe.Options // of a look at the answers
}

const (
	infoMost  = 4 << 20 // bytes of an answer
	infoLimit = 20 * time.Second
	flushPoll = 250 * time.Millisecond
)

// endpointOf reads off a command where its server answers; own is the URL of
// [ready] url, where there is one.
func endpointOf(cmd sglangcmd.Command, own string) (endpoint, error) {
	o, ok := probe.OptionsFor(cmd)
	if own != "" {
		u, err := url.Parse(own)
		if err != nil || u.Host == "" {
			return endpoint{}, fmt.Errorf("cannot measure: %q is no URL of a server", own)
		}
		o.URL = u.Scheme + "://" + u.Host
	} else if !ok {
		return endpoint{}, errors.New("cannot measure: the command is not recognisably SGLang, so nobody knows where it answers; set [ready] url in the base")
	}
	// Straight to the server: a proxy would answer for it.
	return endpoint{o.URL, o.APIKey, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, o}, nil
}

// host and port are where a bench client connects to.
func (e endpoint) host() string { return e.url().Hostname() }

func (e endpoint) port() int {
	u := e.url()
	switch n, err := strconv.Atoi(u.Port()); {
	case err == nil:
		return n
	case u.Scheme == "https":
		return 443
	}
	return 80
}

func (e endpoint) url() *url.URL {
	if u, err := url.Parse(e.base); err == nil {
		return u
	}
	return &url.URL{}
}

// flush empties the prefix cache. 200 says that it is empty, 400 that requests
// still run: then it is asked again until ctx ends.
func (e endpoint) flush(ctx context.Context) error {
	for {
		code, text, err := e.ask(ctx, http.MethodPost, "/flush_cache")
		switch {
		case err != nil:
			return fmt.Errorf("cannot flush the cache: %w", err)
		case code == http.StatusOK:
			return nil
		case code != http.StatusBadRequest:
			return fmt.Errorf("cannot flush the cache: the server answers %d %s", code, visible.Clip(strings.TrimSpace(string(text)), 200))
		}
		if wait(ctx, flushPoll); ctx.Err() != nil {
			return fmt.Errorf("cannot flush the cache: requests still run: %s", visible.Clip(strings.TrimSpace(string(text)), 200))
		}
	}
}

// info is what the server says of its own arguments.
func (e endpoint) info(ctx context.Context) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, infoLimit)
	defer cancel()
	for _, path := range []string{"/get_server_info", "/server_info"} {
		code, text, err := e.ask(ctx, http.MethodGet, path)
		if err != nil {
			return nil, fmt.Errorf("cannot ask the server for its arguments: %w", err)
		}
		var info map[string]any
		if code == http.StatusOK && json.Unmarshal(text, &info) == nil {
			return info, nil
		}
	}
	return nil, errors.New("cannot ask the server for its arguments: it does not tell them")
}

func (e endpoint) ask(ctx context.Context, method, path string) (code int, text []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, method, e.base+path, nil)
	if err != nil {
		return 0, nil, err
	}
	if e.key != "" {
		r.Header.Set("Authorization", "Bearer "+e.key)
	}
	resp, err := e.http.Do(r)
	if err != nil {
		return 0, nil, unwrapped(err)
	}
	defer resp.Body.Close()
	text, err = io.ReadAll(io.LimitReader(resp.Body, infoMost))
	return resp.StatusCode, text, err
}

// unwrapped drops the URL that every error of net/http repeats.
func unwrapped(err error) error {
	if u, ok := err.(*url.Error); ok {
		return u.Err
	}
	return err
}
