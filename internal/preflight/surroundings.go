package preflight

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"

	"sglaunch/internal/mask"
)

// proxyVariables are what Python's HTTP clients read, in either case.
var proxyVariables = []string{"http_proxy", "all_proxy"}

// checkProxy looks for a proxy that would catch the server's own warm-up
// request: it answers 502, and the server kills itself after the whole load.
func checkProxy(_ context.Context, l *look) []Check {
	name, ok := l.proxy()
	if !ok || l.server.SkipWarmup {
		return nil
	}
	host := l.server.Host
	switch host {
	case "", "0.0.0.0":
		host = "127.0.0.1"
	case "::":
		host = "::1"
	}
	if bypassed(host, l.either("no_proxy")) {
		return []Check{fine("%s is set, and %s goes around it", name, host)}
	}
	return []Check{warn("set NO_PROXY=localhost,127.0.0.1,"+host,
		"%s is set and NO_PROXY does not hold %s: the server's warm-up request goes to the proxy", name, host)}
}

// proxy names the variable that sets a proxy for plain HTTP.
func (l *look) proxy() (name string, ok bool) {
	for _, name := range proxyVariables {
		for _, n := range []string{name, strings.ToUpper(name)} {
			if l.getenv(n) != "" {
				return n, true
			}
		}
	}
	return "", false
}

// either reads a variable in small letters, else in capitals.
func (l *look) either(name string) string {
	return cmp.Or(l.getenv(name), l.getenv(strings.ToUpper(name)))
}

// bypassed tells whether requests leaves a host out of the proxy: names match
// at their end, addresses whole or by their network.
func bypassed(host, noProxy string) bool {
	ip, err := netip.ParseAddr(host)
	isIP := err == nil
	return slices.ContainsFunc(strings.Split(noProxy, ","), func(entry string) bool {
		entry = strings.TrimSpace(entry)
		if entry == "*" || entry == host {
			return true
		}
		if isIP {
			network, err := netip.ParsePrefix(entry)
			return err == nil && network.Contains(ip)
		}
		return entry != "" && strings.HasSuffix(host, strings.TrimPrefix(entry, "."))
	})
}

// quietLevels hide the lines from which phases are known.
var quietLevels = []string{"warning", "error", "critical"}

// checkOutput looks for settings that blind sglaunch.
func checkOutput(_ context.Context, l *look) []Check {
	var checks []Check
	if level, _ := l.cmd.Value("--log-level"); slices.Contains(quietLevels, strings.ToLower(level)) {
		checks = append(checks, warn("use --log-level info", "with --log-level %s the server prints no phases and no ready line", level))
	}
	if v := l.getenv("TQDM_DISABLE"); v != "" && v != "0" {
		checks = append(checks, warn("unset it", "TQDM_DISABLE is set: no progress of loading and capture is printed"))
	}
	if len(checks) == 0 {
		checks = append(checks, fine("phases and progress will be printed"))
	}
	return checks
}

// checkSecrets looks for secrets that every user of the machine can read.
func checkSecrets(_ context.Context, l *look) []Check {
	if slices.Equal(mask.Argv(l.Argv), l.Argv) {
		return nil
	}
	return []Check{warn("put flags into a file for --config, and variables into server.env_file, both readable by you alone",
		"the command line holds a secret, and every user of this machine can read command lines")}
}
