package conduct

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sglaunch/internal/config"
	"sglaunch/internal/gpu"
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
	began   time.Time // this tuner
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

// environment is that of a launch of the night.
func (s *site) environment() []string {
	return append(withoutService(os.Environ()), s.marker())
}
