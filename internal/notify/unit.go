package notify

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Unit is a systemd unit for one launch. Paths are absolute.
type Unit struct {
	Name     string   // of the launch
	Program  string   // sglaunch itself
	Run      []string // words after the program: run -c ...
	Dir      string   // working directory
	Paths    []string // files and folders that must be mounted
	Bin      string   // folder of the server's programs, first in PATH; "" = none
	Observe  bool     // sglaunch only tells: systemd must not act in its place
	Stop     time.Duration
	Restart  time.Duration // pause after an end that a restart may help
	Watchdog time.Duration
}

// String is the text of the unit. Each setting that is no matter of course has
// its reason above it.
func (u Unit) String() string {
	start := "TimeoutStartSec=10min"
	if u.Observe {
		start = "TimeoutStartSec=infinity"
	}
	path := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	if u.Bin != "" && !slices.Contains(strings.Split(path, ":"), u.Bin) {
		path = u.Bin + ":" + path
	}
	mounts := ""
	if len(u.Paths) > 0 {
		mounts = "RequiresMountsFor=" + words(u.Paths, false) + "\n"
	}
	return fmt.Sprintf(unitText,
		plainWord(u.Name), mounts,
		word(u.Program, false), words(append([]string{u.Program}, u.Run...), true), word(u.Program, false),
		plainWord(u.Dir), seconds(u.Restart), start, seconds(u.Stop), seconds(u.Watchdog),
		word("PATH="+path, false), plainWord(u.Name))
}

const unitText = `# /etc/systemd/system/sglaunch-%[1]s.service, printed by "sglaunch unit".
[Unit]
Description=SGLang server %[1]s, kept by sglaunch
Wants=network-online.target
After=network-online.target remote-fs.target nvidia-persistenced.service nvidia-fabricmanager.service
%[2]s
[Service]
Type=notify
NotifyAccess=main
# Heals what a killed sglaunch left: processes on the GPUs, patched files.
ExecStartPre=-%[3]s recover
ExecStart=%[4]s
ExecReload=%[3]s reload %[1]s
ExecStopPost=-%[5]s recover
WorkingDirectory=%[6]s

# 10 is "trying later may help", and a killed sglaunch; all other ends are final.
# Budgets outlive a restart, so that it begins no crash loop anew.
Restart=on-failure
RestartPreventExitStatus=0 11 12 13 14 64 78
RestartSec=%[7]s

# A start is extended as long as it gets on.
%[8]s
# Drain, grace, kill, release and revert at their longest.
TimeoutStopSec=%[9]s
# sglaunch stops its own tree; what is left behind it is swept away.
KillMode=mixed
WatchdogSec=%[10]s

# A compiler that runs out of memory must not end the server and sglaunch with it.
OOMPolicy=continue
Delegate=yes
TasksMax=infinity
LimitNOFILE=1048576
LimitMEMLOCK=infinity
# A core of a rank is as large as its share of the model.
LimitCORE=0

# ninja and nvcc are looked for at run time.
Environment=%[11]s
StateDirectory=sglaunch
StateDirectoryMode=0700
RuntimeDirectory=sglaunch
RuntimeDirectoryMode=0700
# Other launches have their sockets there.
RuntimeDirectoryPreserve=yes
SyslogIdentifier=sglaunch-%[12]s
# Nothing of a crash is dropped because it is long.
LogRateLimitIntervalSec=0

# Not here, on purpose: PrivateTmp, PrivateDevices, ProtectHome, NoNewPrivileges,
# MemoryDenyWriteExecute. CUDA, its compilers and nvidia-modprobe need what they take.

[Install]
WantedBy=multi-user.target
`

func seconds(d time.Duration) string {
	return fmt.Sprintf("%ds", int((d + time.Second - 1).Seconds()))
}

// words joins words as systemd splits them.
func words(all []string, command bool) string {
	out := make([]string, len(all))
	for i, w := range all {
		out[i] = word(w, command && i > 0)
	}
	return strings.Join(out, " ")
}

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "\n", `\n`, "\t", `\t`)

// word quotes one word: % is a specifier everywhere, $ a variable in the
// arguments of a command.
func word(w string, argument bool) string {
	out := escapes.Replace(w)
	if argument {
		out = strings.ReplaceAll(out, "$", "$$")
	}
	if w == "" || strings.ContainsAny(w, " \t\n'\";\\") {
		return `"` + out + `"`
	}
	return out
}

// plainWord is for places that know no quotes; names of launches need none.
func plainWord(w string) string { return strings.ReplaceAll(w, "%", "%%") }

// Mounts are the absolute paths among words, each once, none below another.
func Mounts(all []string) []string {
	var paths []string
	for _, w := range all {
		if filepath.IsAbs(w) && w != "/" {
			paths = append(paths, filepath.Clean(w))
		}
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	return slices.DeleteFunc(paths, func(p string) bool {
		return slices.ContainsFunc(paths, func(q string) bool { return p != q && strings.HasPrefix(p, q+"/") })
	})
}
