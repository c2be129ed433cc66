package container

import (
	"path/filepath"
	"slices"
	"strings"
)

// clients are the engines' clients that take docker's words.
var clients = []string{"docker", "podman", "nerdctl"}

// Run is a client's "run" among the words of a command.
type Run struct {
	Client []string // the client, with what runs it (sudo) and its own flags
	IDFile string   // that the person gave; "" = none
	Name   string   // of the container, that the person gave; "" = none

	Detached bool // the client ends at once and the container goes on
	TTY      bool // the client passes no signal on
	NoProxy  bool // as asked: --sig-proxy=false
	Host     bool // the network is the host's
	Remove   bool // once it has ended it is to be gone, with its name
	Replace  bool // podman's: one of that name makes room

	argv []string
	at   int // of "run"
}

// Find looks for a client's run. Other words of a client start no server.
func Find(argv []string) (Run, bool) {
	client, at := slices.IndexFunc(argv, isClient), slices.Index(argv, "run")
	if client < 0 || at < client || slices.ContainsFunc(argv[:client], isShell) || otherVerb(argv[client+1:at]) {
		return Run{}, false
	}
	r := Run{Client: slices.Clone(argv[:at]), argv: argv, at: at}
	r.read(argv[at+1:])
	return r, true
}

// Engine is the client's name.
func (r Run) Engine() string {
	return filepath.Base(r.Client[slices.IndexFunc(r.Client, isClient)])
}

// Beyond tells of words that put a server into a container from which nothing here
// can take it: those of a client that only enters or starts one, and a client's in
// the script of a shell. Such a server outlives its client.
func Beyond(argv []string) (what string, ok bool) {
	if _, ok := Find(argv); ok {
		return "", false
	}
	words, verbs, where := argv, []string{"exec", "start", "compose"}, ""
	if sh := slices.IndexFunc(argv, isShell); sh >= 0 {
		words, where = strings.Fields(strings.Join(argv[sh+1:], " ")), " in "+filepath.Base(argv[sh])+" -c"
		verbs = append(verbs, "run")
	}
	client := slices.IndexFunc(words, isClient)
	if client < 0 {
		return "", false
	}
	isVerb := func(w string) bool { return slices.Contains(verbs, w) }
	verb := slices.IndexFunc(words[client:], isVerb)
	if verb < 0 || otherVerb(words[client+1:client+verb]) {
		return "", false
	}
	return filepath.Base(words[client]) + " " + words[client+verb] + where, true
}

// otherVerb reports whether the words between a client and "run" hold a verb, as
// in "docker exec NAME run". The client's own flags may take a value.
func otherVerb(words []string) bool {
	for i, w := range words {
		flag, value := strings.HasPrefix(w, "-"), i > 0 && strings.HasPrefix(words[i-1], "-")
		if !flag && !value && w != "container" {
			return true
		}
	}
	return false
}

func isClient(word string) bool { return slices.Contains(clients, filepath.Base(word)) }

func isShell(word string) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "zsh"}, filepath.Base(word))
}

// alone are the flags of run that take no value. All others take one, which may
// be the next word.
var alone = []string{
	"--detach", "--disable-content-trust", "--help", "--init", "--interactive", "--no-healthcheck", "--oom-kill-disable",
	"--privileged", "--publish-all", "--quiet", "--read-only", "--replace", "--rm", "--rmi", "--rootfs", "--sig-proxy", "--tls-verify", "--tty",
}

// read takes the flags up to the image.
func (r *Run) read(words []string) {
	for i := 0; i < len(words) && strings.HasPrefix(words[i], "-"); i++ {
		name, value, inline := strings.Cut(words[i], "=")
		if !strings.HasPrefix(name, "--") {
			if r.letters(name[1:]) && !inline {
				i++
			}
			continue
		}
		if !inline && !slices.Contains(alone, name) && i+1 < len(words) {
			i++
			value = words[i]
		}
		r.take(name, value, !inline || value == "true")
	}
}

// letters takes a cluster such as -dit; it reports whether the last one takes the
// next word.
func (r *Run) letters(cluster string) (takesNext bool) {
	for i, l := range cluster {
		switch l {
		case 'd':
			r.Detached = true
		case 't':
			r.TTY = true
		case 'i', 'P', 'q':
		default: // its value is what is left of the word, or the next one
			return i == len(cluster)-1
		}
	}
	return false
}

func (r *Run) take(name, value string, on bool) {
	switch name {
	case "--detach":
		r.Detached = on
	case "--tty":
		r.TTY = on
	case "--sig-proxy":
		r.NoProxy = value == "false"
	case "--cidfile":
		r.IDFile = value
	case "--name":
		r.Name = value
	case "--rm":
		r.Remove = on
	case "--replace":
		r.Replace = on
	case "--network", "--net":
		r.Host = value == "host"
	}
}

// WithIDFile returns the command with a file for the container's ID: the
// person's, or the given one.
func (r Run) WithIDFile(path string) (argv []string, file string) {
	if r.IDFile != "" {
		return slices.Clone(r.argv), r.IDFile
	}
	return slices.Insert(slices.Clone(r.argv), r.at+1, "--cidfile="+path), path
}
