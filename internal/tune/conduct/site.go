package conduct

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sglaunch/internal/config"
	"sglaunch/internal/gpu"
	"sglaunch/internal/notify"
	"sglaunch/internal/sglangcmd"
	"sglaunch/internal/statedir"
	"sglaunch/internal/tune"
)

// site is the machine on which a night takes place, as the study sees it. It is
// used by one goroutine, the conductor's.
type site struct {
	state   statedir.Dir
	dir     string   // folder of the study: journal, generated files, results
	program []string // sglaunch itself
	study   tune.Study
	base    config.Config
	env     []string // what the base's server would get
	folder  string   // where it would be started
	eyes    *eyes
	relay   *relay // to systemd; nil: it does not listen
	asked   <-chan string
	taken   bool      // the production server was ended for the night
	idle    []gpu.GPU // before the night; nil: not seen yet
	trials  []tune.Trial
	clients map[string]placement // of each load's client
	began   time.Time            // this tuner
	tell    func(string)
	words   teller
}

// markerName is in the environment of everything that a night starts, but for
// the server that serves in the morning.
const markerName = "SGLAUNCH_TUNE"

// marker tells the processes of this study from those of any other.
func (s *site) marker() string { return markerName + "=" + s.dir }

// trialName is the name of every launch of the night but the morning's: one
// name for all, so that two never live at once, and the one that a dead tuner
// left behind is found.
func trialName(study string) string {
	name := "tune-" + study
	if len(name) > nameMost {
		name = name[:nameMost-len(sum(nil))] + sum([]byte(study))
	}
	return name
}

const nameMost = 60 // a launch's name has at most 64

// path names a file in the study's folder.
func (s *site) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

// launchFolder is where the files of one launch of the night are.
func (s *site) launchFolder(n int) string { return s.path("launches", fmt.Sprint(n)) }

// baseCommand is what the base starts, as it reads now: a start script may have
// been edited since.
func (s *site) baseCommand() sglangcmd.Command {
	return sglangcmd.Parse(s.base.Server.Command, s.env, s.folder)
}

// environment is that of a launch of the night.
func (s *site) environment() []string {
	return append(notify.WithoutService(os.Environ()), s.marker())
}

func newSite(o Options) (*site, error) {
	dir, err := o.State.Study(o.Study.Name)
	if err != nil {
		return nil, err
	}
	s := &site{
		state: o.State, dir: dir, program: o.Program, study: o.Study, base: o.Base,
		began: time.Now(), tell: o.Tell, asked: o.Asked, folder: o.Base.Server.Directory,
	}
	if s.folder == "" {
		if s.folder, err = os.Getwd(); err != nil {
			return nil, fmt.Errorf("cannot find the working directory: %w", err)
		}
	}
	if s.env, err = o.Base.Environ(os.Environ()); err != nil {
		return nil, err
	}
	if o.Base.Ready.OutputCheck == "off" {
		s.study.Quality.Answers = 0 // the base says that nobody looks at its answers
	}
	s.eyes = openEyes(o.Source, s.devices)
	return s, nil
}

// devices are the GPUs that the base's server uses.
func (s *site) devices(sample gpu.Sample) []gpu.GPU {
	if uuids := s.base.GPU.Devices.UUIDs; len(uuids) > 0 {
		if picked, err := gpu.Select(uuids, sample.GPUs); err == nil {
			return picked
		}
	}
	picked, _ := gpu.Devices(s.baseCommand(), sample.GPUs)
	return picked
}
