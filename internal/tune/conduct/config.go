package conduct

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sglaunch/internal/config"
	"sglaunch/internal/history"
	"sglaunch/internal/sglangcmd"
	"sglaunch/internal/statedir"
	"sglaunch/internal/tune"
	"sglaunch/patch"
)

// served is the launch.toml that a person would run to get what a trial was:
// the base with the trial's changes, and nothing else of the night.
func served(base config.Config, study tune.Study, t tune.Trial) (config.Config, error) {
	c := base
	c.Server.Command = slices.Clone(base.Server.Command)
	flags := t.Flags()
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		if err := setFlag(&c, name, flags[name]); err != nil {
			return c, err
		}
	}
	c.Server.Env = maps.Clone(base.Server.Env)
	for name, v := range t.Env() {
		addEnv(&c, name, v.Text) // no variable can be taken out of an inherited environment; an empty one says as much
	}
	if names, ok := t.Patches(); ok {
		var err error
		if c.Patches, err = patchSet(names, base.Patches, study.Patches); err != nil {
			return c, err
		}
	}
	return c, nil
}

func addEnv(c *config.Config, name, value string) {
	if c.Server.Env == nil {
		c.Server.Env = map[string]string{}
	}
	c.Server.Env[name] = value
}

// setFlag changes the command line, and makes sure that the server will see it.
func setFlag(c *config.Config, name string, v tune.Value) error {
	switch v.Kind {
	case tune.Absent:
		c.Server.Command = sglangcmd.WithoutFlag(c.Server.Command, name)
	case tune.Alone:
		c.Server.Command = sglangcmd.WithFlag(c.Server.Command, name)
	default:
		c.Server.Command = sglangcmd.WithFlag(c.Server.Command, name, words(v.Text)...)
	}
	now := sglangcmd.Parse(c.Server.Command, nil, c.Server.Directory)
	if !now.SGLang() {
		return nil // a command of one's own takes its words as they are
	}
	if !sees(now, name, v) {
		return fmt.Errorf("cannot set %s: the base's command is a script whose flags are out of reach; write the server's own command line into [server] command", name)
	}
	return nil
}

// sees tells whether a command gives the server a flag as it was set.
func sees(c sglangcmd.Command, name string, v tune.Value) bool {
	given := c.Values(name)
	switch v.Kind {
	case tune.Absent:
		return !c.Has(name)
	case tune.Alone:
		return c.Has(name) && len(given) == 0
	}
	return slices.Equal(given, words(v.Text))
}

// words are those of a flag's value: a list of numbers or names is several, a
// JSON text is one.
func words(text string) []string {
	if strings.ContainsAny(text, "{[\"'") || strings.TrimSpace(text) == "" {
		return []string{text}
	}
	return strings.Fields(text)
}

// patchSet picks patches by name, those of the base first, shipped ones last.
func patchSet(names []string, lists ...[]patch.Patch) ([]patch.Patch, error) {
	var set []patch.Patch
	for _, name := range names {
		i, list := -1, []patch.Patch(nil)
		for _, list = range lists {
			if i = slices.IndexFunc(list, func(p patch.Patch) bool { return p.Label() == name }); i >= 0 {
				break
			}
		}
		if i >= 0 {
			set = append(set, list[i])
			continue
		}
		shipped, ok := patch.Shipped(name)
		if !ok {
			return nil, fmt.Errorf("cannot use the patch %q: it is neither in the base, nor in the study, nor shipped", name)
		}
		set = append(set, shipped)
	}
	return set, nil
}

// tried is the launch.toml of a trial: what would be served, under the night's
// name, without hooks and without a second attempt. The tuner alone tries
// again, and no router must ever hear of it. Nobody is served by it, so a server
// that hangs is ended, in service, too.
func (s *site) tried(t tune.Trial, stage tune.Stage, cold string) (config.Config, error) {
	c, err := served(s.base, s.study, t)
	if err != nil {
		return c, err
	}
	c.Server.Name = trialName(s.study.Name)
	c.Relaunch.Act, c.Relaunch.Policy, c.Relaunch.Fallbacks, c.Fallbacks = "all", "never", nil, nil
	c.Hooks = config.Default().Hooks
	c.Listen, c.Log.Directory = config.Default().Listen, ""
	if stage == tune.Screen {
		checkAnswers(&c, t)
	}
	c.Ready.Timeout = min(c.Ready.Timeout, s.study.Limits.Start)
	for name, folder := range s.caches(t, cold) {
		addEnv(&c, name, folder)
	}
	return c, nil
}

// checkAnswers has the answers of a changed server looked at, unless the base
// says that they never are: what is fast and wrong must not win.
func checkAnswers(c *config.Config, t tune.Trial) {
	if c.Ready.OutputCheck == "auto" && !t.Baseline() {
		c.Ready.OutputCheck = "always"
	}
}

// cacheVariables name the folders of compiled kernels and tuning results. What
// one set of patches has tuned is in the way of another: the names of those
// files do not tell the patches.
var cacheVariables = map[string]string{
	"FLASHINFER_WORKSPACE_BASE": "flashinfer", "TRITON_CACHE_DIR": "triton", "TORCH_EXTENSIONS_DIR": "torch_extensions",
	"TORCHINDUCTOR_CACHE_DIR": "inductor", "SGLANG_CACHE_DIR": "sglang", "SGLANG_DG_CACHE_DIR": "deep_gemm",
	"TVM_FFI_CACHE_DIR": "tvm_ffi",
}

// caches are the variables of a trial's cache folders; cold is a folder of its
// own, "" where it is not to have one. Shared caches need no variable.
func (s *site) caches(t tune.Trial, cold string) map[string]string {
	root := cold
	switch {
	case root != "":
	case s.study.Caches == tune.CachesPerPatch:
		names, ok := t.Patches()
		if !ok {
			for _, p := range s.base.Patches {
				names = append(names, p.Label())
			}
		}
		root = s.path("caches", "unpatched")
		if len(names) > 0 {
			root = s.path("caches", "patches-"+sum([]byte(history.PatchSet(names))))
		}
	default:
		return nil
	}
	set := map[string]string{}
	for name, folder := range cacheVariables {
		set[name] = filepath.Join(root, folder)
	}
	return set
}

// writeConfig puts a launch.toml where only we can read it: it may hold secrets.
func writeConfig(path string, c config.Config, head string) error {
	if err := os.MkdirAll(filepath.Dir(path), statedir.DirMode); err != nil {
		return fmt.Errorf("cannot make a folder for a launch: %w", err)
	}
	var b strings.Builder
	for line := range strings.Lines(head) {
		b.WriteString("# " + line)
	}
	b.WriteString("\n" + c.Brief())
	if err := statedir.Replace(path, []byte(b.String())); err != nil {
		return fmt.Errorf("cannot write a launch.toml: %w", err)
	}
	return nil
}
