package probe

import (
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sglaunch/internal/sglangcmd"
)

// Options of a Prober.
type Options struct {
	// URL of the server: http://127.0.0.1:30000. One with a path names the one
	// endpoint to ask, and a 200 from it proves that the server is ready.
	URL        string
	Own        bool          // the URL is where the command binds: an address of this machine
	APIKey     string        // sent as a bearer token where the server wants it, never shown
	Version    string        // of SGLang; "" = asked of the server when it matters
	Follower   bool          // a node that is not the first: its /health is a dummy
	Static     bool          // /health answers 200 as soon as HTTP is up, whatever the version
	NoGenerate string        // why a generation that comes from us could harm the server, or is none; "" = it may
	Speculates bool          // it drafts tokens: asked for their probabilities, it may die (sglang issue 17349)
	Limit      time.Duration // of one probe; 0 = 25 s, above the server's own 20
}

// OptionsFor reads off a command what a probe has to know. ok is false where
// the command is not recognisably SGLang, or its server speaks no HTTP; then the
// URL is empty.
func OptionsFor(cmd sglangcmd.Command) (o Options, ok bool) {
	if !cmd.SGLang() || cmd.Has("--grpc-mode") {
		return Options{}, false
	}
	server := cmd.Server()
	o.URL, o.Own = target(cmd, server), true
	o.APIKey = server.APIKey
	rust, _ := cmd.Getenv("SGLANG_RUST_SERVER")
	o.Follower = server.NodeRank > 0
	o.Static = rust == "1"
	o.NoGenerate = noGenerate(cmd)
	_, o.Speculates = cmd.Value("--speculative-algorithm", "--speculative-algo")
	return o, true
}

const noGeneration = "an embedding or reward model generates nothing"

// noGenerate says why a server must not be asked for a generation: a request
// that a prefill or decode node gets from anybody but its router has killed it
// (sglang pull 8063), and an embedding or reward model has none to give.
func noGenerate(cmd sglangcmd.Command) string {
	if cmd.Has("--is-embedding") {
		return noGeneration
	}
	mode, _ := cmd.Value("--disaggregation-mode")
	return routed(mode)
}

func routed(mode string) string {
	if mode == "" || mode == "null" {
		return ""
	}
	return "a " + mode + " node takes requests from its router alone"
}

func target(cmd sglangcmd.Command, s sglangcmd.Server) string {
	scheme := "http"
	if _, ok := cmd.Value("--ssl-certfile"); ok {
		scheme = "https"
	}
	u := url.URL{Scheme: scheme, Host: net.JoinHostPort(reachable(s.Host), strconv.Itoa(s.Port))}
	return u.String()
}

// reachable turns an address to bind into one to connect to.
func reachable(host string) string {
	switch host = strings.Trim(host, "[]"); host {
	case "", "0.0.0.0":
		return "127.0.0.1"
	case "::":
		return "::1"
	}
	return host
}
