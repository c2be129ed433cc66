package config

import (
	"maps"
	"math"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"sglaunch/internal/mask"
	"sglaunch/phases"
)

// Validate reports every rule that the configuration breaks, as an Errors
// without files and lines: Load adds those.
func (c Config) Validate() error {
	v := validator{config: &c}
	v.words()
	v.server()
	v.ready()
	v.phases()
	v.patches()
	v.relaunch()
	v.stop()
	v.rest()
	return v.errors.orNil()
}

// checkRules validates and says where each broken rule stands.
func (l *loader) checkRules(commandOptional bool) {
	broken, _ := l.config.Validate().(Errors)
	for _, e := range broken {
		if commandOptional && e.Key == "server.command" && len(l.config.Server.Command) == 0 {
			continue
		}
		l.add(e)
	}
}

// validator collects broken rules. Its methods hold one plain sentence a rule.
type validator struct {
	config *Config
	errors Errors
}

// must records a broken rule of one key.
func (v *validator) must(ok bool, key string, value any, problem string, args ...any) {
	if !ok {
		v.errors = append(v.errors, NewError(key, value, problem, args...))
	}
}

// between is the rule of most durations.
func (v *validator) between(key string, d, least, most time.Duration) {
	v.must(d >= least && d <= most, key, d, "it must be from %s to %s", formatDuration(least), formatDuration(most))
}

func (v *validator) count(key string, n, least, most int) {
	v.must(n >= least && n <= most, key, n, "it must be from %d to %d", least, most)
}

// Bounds beyond which a value is a slip, not a wish.
const (
	aWeek   = 7 * 24 * time.Hour
	aMonth  = 31 * 24 * time.Hour
	anHour  = time.Hour
	instant = time.Millisecond
)

// words checks each key that takes one of a few words.
func (v *validator) words() {
	for _, f := range keys(v.config) {
		words := f.oneof()
		if len(words) == 0 {
			continue
		}
		word := f.Value.String()
		v.must(slices.Contains(words, word), f.Key, word, "it must be one of %s", strings.Join(words, ", "))
	}
}

var (
	launchName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	variableName = regexp.MustCompile(`^[^=\x00]+$`)
)

const badVariableName = "the name of a variable must not be empty or hold = or NUL"

func (v *validator) server() {
	s := v.config.Server
	v.must(launchName.MatchString(s.Name), "server.name", s.Name,
		"it must be 1 to 64 letters, digits, dots, dashes and underscores, the first a letter or digit")
	if len(s.Command) == 0 {
		v.errors = append(v.errors, &Error{
			Key: "server.command", Problem: "it is empty: there is nothing to start",
			Hint: `write the command after "--", or as [server] command in launch.toml`,
		})
	} else {
		v.must(s.Command[0] != "", "server.command", s.Command, "its first word must name a program")
	}
	for _, arg := range s.Command {
		v.must(!strings.ContainsRune(arg, 0), "server.command", s.Command, "a NUL byte cannot be passed on to a process")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		v.must(variableName.MatchString(name), join("server.env", name), mask.Value(name, s.Env[name]), badVariableName)
	}
}

func (v *validator) ready() {
	r := v.config.Ready
	v.must(r.URL == "" || isHTTP(r.URL), "ready.url", r.URL, `it must be a URL such as "http://127.0.0.1:30000"`)
	v.between("ready.timeout", r.Timeout, time.Second, aMonth)
	c := r.Check
	v.count("ready.check.generations", c.Generations, 1, 100_000)
	v.count("ready.check.tokens", c.Tokens, 1, 1_000_000)
	v.between("ready.check.limit", c.Limit, time.Second, 24*time.Hour)
	v.must(len(c.BatchSizes) > 0, "ready.check.batch_sizes", c.BatchSizes, "it must hold at least one batch size")
	for i, n := range c.BatchSizes {
		v.count(element("ready.check.batch_sizes", i), n, 1, 100_000)
	}
}

func (v *validator) phases() {
	p := v.config.Phases
	v.must(p.Rules == "sglang" || isRulesFile(p.Rules), "phases.rules", p.Rules, `it must be "sglang" or a file, as in "./my-rules.toml"`)
	if broken := brokenRules("phases.rule", p.Own); len(broken) > 0 {
		v.errors = append(v.errors, broken...)
	} else if _, err := phases.NewRuleSet(p.Own); err != nil {
		v.errors = append(v.errors, &Error{Key: "phases.rule", Problem: cause(err)})
	}
	for _, phase := range slices.Sorted(maps.Keys(p.Limits)) {
		limit, key := p.Limits[phase], join("phases.limits", phase.String())
		v.between(key+".quiet", limit.Quiet, 0, aMonth)
		v.between(key+".timeout", limit.Timeout, 0, aMonth)
		v.must(limit.Timeout == 0 || limit.Quiet <= limit.Timeout, key, limit, "its quiet must not be longer than its timeout")
	}
}

func (v *validator) patches() {
	seen := map[string]int{}
	for i, p := range v.config.Patches {
		key := element("patch", i)
		if err := p.Validate(); err != nil {
			v.errors = append(v.errors, &Error{Key: key, Problem: cause(err)})
		}
		if first, twice := seen[p.Label()]; twice {
			v.must(false, key, p.Label(), "patch %d has this name already", first+1)
		} else {
			seen[p.Label()] = i
		}
	}
}

func (v *validator) relaunch() {
	r := v.config.Relaunch
	v.count("relaunch.attempts", r.Attempts, 1, 1000)
	v.count("relaunch.same_cause", r.SameCause, 1, 1000)
	v.count("relaunch.no_progress", r.NoProgress, 1, 1000)
	v.between("relaunch.window", r.Window, time.Second, aMonth)
	v.between("relaunch.healthy_after", r.HealthyAfter, time.Second, aMonth)
	b := r.Backoff
	v.between("relaunch.backoff.initial", b.Initial, 0, aWeek)
	v.between("relaunch.backoff.max", b.Max, 0, aWeek)
	v.must(b.Initial <= b.Max, "relaunch.backoff.initial", b.Initial, "it must not be longer than max, %s", formatDuration(b.Max))
	v.must(b.Factor >= 1 && b.Factor <= 100, "relaunch.backoff.factor", b.Factor, "it must be from 1 to 100")
	v.must(b.Jitter >= 0 && b.Jitter <= 1, "relaunch.backoff.jitter", b.Jitter, "it must be from 0 to 1")
	for i, f := range v.config.Fallbacks {
		v.fallback(element("fallback", i), f)
	}
}

// fallback holds what a rung of the ladder takes, so that a slip is told with
// its line, by check as well, and not by a supervisor that cannot begin.
func (v *validator) fallback(key string, f Fallback) {
	if _, known := phases.LookupCause(f.Cause); !known {
		v.must(false, key+".cause", f.Cause, "%s", unknownCause(f.Cause))
	}
	if _, err := phases.ParsePhase(f.Phase); f.Phase != "" && err != nil {
		v.errors = append(v.errors, &Error{Key: key + ".phase", Problem: cause(err)})
	}
	for _, flag := range slices.Sorted(maps.Keys(f.Set)) {
		v.must(strings.HasPrefix(flag, "-"), join(key+".set", flag), f.Set[flag], "a flag begins with -")
		v.open(join(key+".set", flag), flag)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Env)) {
		v.must(variableName.MatchString(name), join(key+".env", name), mask.Value(name, f.Env[name]), badVariableName)
		v.open(join(key+".env", name), name)
	}
	v.must(len(f.Set)+len(f.Env) > 0, key, f.Cause, "it changes nothing: it must have set or env")
	v.count(key+".min", f.Min, 0, math.MaxInt32)
	v.count(key+".max", f.Max, 0, 1000)
}

// open refuses a secret where every change is written into the journal.
func (v *validator) open(key, name string) {
	v.must(!mask.Name(name), key, mask.Stars, "a fallback changes no secret: what it changes is recorded")
}

// unknownCause tells what a person may have meant.
func unknownCause(name string) string {
	known := causeNames()
	if near := Nearest(name, known); near != "" {
		return "there is no such cause; did you mean " + near + "?"
	}
	return "there is no such cause; known are " + strings.Join(known, ", ")
}

func causeNames() []string {
	var names []string
	for _, c := range phases.Causes() {
		names = append(names, c.Name)
	}
	return names
}

// stopSignals are those that a server can take as a wish to end.
var stopSignals = []string{"SIGTERM", "SIGINT", "SIGQUIT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGKILL"}

func (v *validator) stop() {
	s := v.config.Stop
	v.must(slices.Contains(stopSignals, s.Signal), "stop.signal", s.Signal, "it must be one of %s", strings.Join(stopSignals, ", "))
	v.between("stop.drain", s.Drain, 0, 24*time.Hour)
	v.between("stop.grace", s.Grace, 0, anHour)
	v.between("stop.release", s.Release, 0, anHour)
	v.between("stop.settle", s.Settle, 0, anHour)
}

func (v *validator) rest() {
	c := v.config
	v.between("gpu.sample.starting", c.GPU.Sample.Starting, 100*instant, anHour)
	v.between("gpu.sample.serving", c.GPU.Sample.Serving, 100*instant, anHour)
	for i, uuid := range c.GPU.Devices.UUIDs {
		v.must(strings.HasPrefix(uuid, "GPU-") || strings.HasPrefix(uuid, "MIG-"), element("gpu.devices", i), uuid,
			"it must be a UUID as nvidia-smi -L prints it, GPU-... or MIG-...")
	}
	v.must(c.Log.Rotate.Size >= 1<<20, "log.rotate.size", c.Log.Rotate.Size, "it must be at least 1MiB")
	v.between("log.rotate.age", c.Log.Rotate.Age, time.Minute, 366*24*time.Hour)
	v.count("log.rotate.keep", c.Log.Rotate.Keep, 1, 100_000)
	v.count("log.keep.launches", c.Log.Keep.Launches, 1, 1_000_000)
	v.must(c.Listen.HTTP == "" || isHostPort(c.Listen.HTTP), "listen.http", c.Listen.HTTP,
		`it must be host:port, as in "127.0.0.1:9180"; "0.0.0.0:9180" lets every machine read it`)
	v.must(c.Hooks.Webhook == "" || isHTTP(c.Hooks.Webhook), "hooks.webhook", mask.URL(c.Hooks.Webhook), "it must be a URL with http or https")
	v.between("hooks.limit", c.Hooks.Limit, 100*instant, anHour)
	for _, hook := range hooks(v.config) {
		if argv := hook.argv(); len(argv) > 0 {
			v.must(argv[0] != "", hook.Key, argv, "its first word must name a program")
		}
	}
}

func isHTTP(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}

func isHostPort(address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" { // none would mean all, and nobody has said so
		return false
	}
	n, err := net.LookupPort("tcp", port)
	return err == nil && n >= 0 && n <= math.MaxUint16
}
