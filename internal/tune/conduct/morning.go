package conduct

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"sglaunch/internal/config"
	"sglaunch/internal/mask"
	"sglaunch/internal/notify"
	"sglaunch/internal/tune"
	"sglaunch/supervisor/machine"
)

// servingName marks the launch that is left serving, so that a tuner that comes
// back knows it for its own.
const servingName = "SGLAUNCH_TUNE_SERVING"

func (s *site) servingMarker() string { return servingName + "=" + s.dir }

// promoted is the launch.toml of what serves in the morning: the production
// name, hooks and policy of the base. A winner keeps the folders of compiled
// kernels that the night has filled; those of the machine know nothing of it.
func (s *site) promoted(t tune.Trial) (config.Config, error) {
	c, err := served(s.base, s.study, t)
	if err != nil || t.Baseline() {
		return c, err
	}
	checkAnswers(&c, t)
	for name, folder := range s.caches(t, "") {
		if _, own := c.Server.Env[name]; !own {
			addEnv(&c, name, folder)
		}
	}
	return c, nil
}

// service is the environment of the launch that serves: it may speak to systemd
// through us.
func (s *site) service() []string {
	env := append(notify.WithoutService(os.Environ()), s.servingMarker())
	if s.relay != nil {
		env = append(env, "NOTIFY_SOCKET="+s.relay.path)
	}
	return env
}

// dropIn writes a trial as a launch.toml that a person can read, use and take
// back, and returns its path.
func (s *site) dropIn(name string, t tune.Trial) (string, error) {
	c, err := s.promoted(t)
	if err != nil {
		return "", err
	}
	path := s.path(name)
	head := fmt.Sprintf("%s of the study %s: %s\nbase: %s\nuse it: sglaunch run -c %s\n", t.ID, s.study.Name, t.Name, s.study.Base, path)
	return path, writeConfig(path, c, head)
}

// serveOn stays the parent of what serves: it passes the end on, in both
// directions, and returns the launch's exit code.
func (s *site) serveOn(ctx context.Context, l *Launch, longest time.Duration) int {
	by := ""
	select {
	case <-l.gone:
	case <-ctx.Done():
		by = "sglaunch tune"
	case who := <-s.asked: // there are no trials any more that could end
		by = "sglaunch tune: " + who
	}
	if by != "" && !l.Stop(by, longest) {
		return machine.CodeHeld
	}
	code, ended := l.exit()
	a, begun := readAccount(s.state, l.Name, l.ID(), s.began)
	switch {
	case ended:
		return code
	case begun && a.ended:
		return a.code
	case !begun && by != "": // it was stopped before it had done anything
		return 0
	}
	return machine.CodeHeld
}

// again starts what the night left serving once more: after a reboot the unit
// that ran the night is the unit that serves.
func (s *site) again(launch int) (*Launch, error) {
	file := filepath.Join(s.launchFolder(launch), "launch.toml")
	c, err := config.Load(config.Options{Path: file})
	if err != nil {
		return nil, err
	}
	return startLaunch(c.Server.Name, s.state, program{s.program, file, "", s.service()}, true)
}

// noted does what follows from a record that is on disk.
func (s *site) noted(r tune.Record) {
	if text := mask.String(s.words.line(r)); text != "" {
		s.tell(text)
		s.relay.say("STATUS=" + text)
	}
	switch b := r.Body.(type) {
	case tune.Decided:
		s.keepWinner(b.Verdict.Winner)
	case tune.Serving:
		s.giveBack(context.Background())
	}
}

// keepWinner lays the winner beside, ready for use.
func (s *site) keepWinner(id string) {
	i := slices.IndexFunc(s.trials, func(t tune.Trial) bool { return t.ID == id })
	if i < 0 {
		return
	}
	path, err := s.dropIn("winner.toml", s.trials[i])
	if err != nil {
		s.tell("the winner's launch.toml could not be written: " + err.Error())
		return
	}
	s.tell("the winner is ready for use: sglaunch run -c " + path)
}
