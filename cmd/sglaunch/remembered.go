package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"sglaunch/internal/config"
	"sglaunch/supervisor"
	"sglaunch/supervisor/machine"
)

// remembered is the configuration of a launch as its supervisors hand it on, by
// the shim's memory: a file that is edited, or gone, while the server serves
// changes nothing before somebody says reload.
type remembered struct {
	Began []byte `json:"began"` // launch.toml as the launch began with it
	Newer []byte `json:"newer"` // as it was reloaded last; nil: never
	// What the files held that these two name. nil: an older program has handed it on.
	BeganFiles config.Files `json:"began_files"`
	NewerFiles config.Files `json:"newer_files"`
	Dir        string       `json:"dir"` // the working directory, which may be removed
}

// rereader reads a launch's configuration: as it was when the launch began, and
// again at each reload.
type rereader struct {
	flags   *launchFlags
	command []string

	mu   sync.Mutex // guards what follows
	held remembered
	cfg  config.Config // in force
}

// newRereader takes up what the supervisor before has left; "" = this is the
// first one.
func newRereader(flags *launchFlags, command []string, left string) (*rereader, error) {
	r := &rereader{flags: flags, command: command}
	var err error
	if left != "" {
		err = json.Unmarshal([]byte(left), &r.held)
	} else if flags.file != "" {
		r.held.Began, err = config.ReadContent(flags.file)
	}
	if r.held.Dir == "" { // where there is none, whoever needs one says so
		r.held.Dir, _ = os.Getwd()
	}
	if err != nil {
		return nil, err
	}
	if r.cfg, err = r.load(r.held.Began, r.held.BeganFiles); err != nil {
		return r, err
	}
	r.held.BeganFiles = r.cfg.Files
	if r.held.Newer == nil {
		return r, nil
	}
	newer, err := r.load(r.held.Newer, r.held.NewerFiles)
	r.cfg = config.Going(r.cfg, newer)
	return r, err
}

func (r *rereader) load(content []byte, files config.Files) (config.Config, error) {
	return config.Load(config.Options{Path: r.flags.file, Dir: r.held.Dir, Content: content, Files: files, Command: r.command, Sets: config.SetsFrom(r.flags.set)})
}

// remember is for the next supervisor.
func (r *rereader) remember() string {
	text, err := json.Marshal(r.held)
	if err != nil {
		return "" // bytes always encode
	}
	return string(text)
}

// again is supervisor.Setup.Reload.
func (r *rereader) again() (supervisor.Reloaded, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	path := r.flags.file
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.held.Dir, path)
	}
	content, err := config.ReadContent(path)
	if err != nil {
		return supervisor.Reloaded{}, err
	}
	newer, err := r.load(content, nil)
	if err != nil {
		return supervisor.Reloaded{}, err
	}
	going := config.Going(r.cfg, newer)
	setup, options, err := launchOf(going, r.held.Dir, r.flags.quiet)
	if err != nil {
		return supervisor.Reloaded{}, err
	}
	re := supervisor.Reloaded{Settings: setup.Settings, Options: options}
	for _, c := range config.Changes(r.cfg, newer) {
		list := map[config.When]*[]string{
			config.Now: &re.Now, config.NextAttempt: &re.NextAttempt, config.NextLaunch: &re.NextLaunch,
		}[c.When]
		*list = append(*list, c.Key)
	}
	r.cfg, r.held.Newer, r.held.NewerFiles = going, slices.Clip(content), newer.Files
	re.Remember = r.remember()
	return re, nil
}

// setup is what the supervisor begins with, or goes on with.
func (r *rereader) setup() (supervisor.Setup, machine.Options, error) {
	setup, options, err := launchOf(r.cfg, r.held.Dir, r.flags.quiet)
	if err != nil {
		return setup, options, err
	}
	setup.Remember = r.remember()
	if r.flags.file != "" {
		setup.Reload = r.again
	}
	return setup, options, nil
}
