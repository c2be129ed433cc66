package stacks

import (
	"path"
	"strings"
)

// What stands around the work and tells nothing of it: waiting itself, and what
// wraps every call.

var dullFiles = map[string]bool{
	"threading.py": true, "queue.py": true, "selectors.py": true, "subprocess.py": true, "contextlib.py": true,
	"_contextlib.py": true, "c10d_logger.py": true, "functools.py": true, "_ops.py": true, "popen_fork.py": true,
	"popen_spawn_posix.py": true, "process.py": true, "connection.py": true,
}

var dullFuncs = map[string]bool{
	"_wrapped_call_impl": true, "_call_impl": true, "wrapper": true, "decorate_context": true, "??": true, "<module>": true,
}

// dullNative are beginnings of functions of libc, of the interpreter and of the
// kernel's ways into sleep.
var dullNative = []string{
	"__futex", "futex", "do_futex", "__GI_", "___pthread", "__pthread", "pthread", "__new_sem", "sem_", "syscall", "__x64_sys", "do_syscall",
	"entry_SYSCALL", "__poll", "poll", "ppoll", "epoll", "ep_poll", "do_epoll", "select", "nanosleep", "__nanosleep", "clock_nanosleep",
	"hrtimer_nanosleep", "do_nanosleep", "__clock_nanosleep", "sched_yield", "__sched_yield", "read", "__read", "recv", "accept", "wait4",
	"__wait4", "start_thread", "clone", "schedule", "do_poll", "do_sys_poll",
	"PyThread_", "lock_PyThread", "acquire_timed", "_Py", "Py", "cfunction_", "method_vectorcall", "do_call_core",
}

// dull reports whether a frame says nothing of what its thread is about.
func (f Frame) dull() bool {
	if dullFuncs[f.Func] && !strings.HasPrefix(f.File, "lib") || dullFiles[path.Base(f.File)] {
		return true
	}
	if strings.HasSuffix(f.File, ".py") {
		return false
	}
	for _, beginning := range dullNative {
		if strings.HasPrefix(f.Func, beginning) {
			return true
		}
	}
	return false
}

// place is where a stack stands, in the words of the innermost frame that says
// something.
func place(frames []Frame) string {
	for _, f := range frames {
		if !f.dull() {
			return f.where()
		}
	}
	if len(frames) == 0 {
		return "nowhere that can be seen"
	}
	return frames[0].where()
}

// key is the whole stack as two looks at one place have it in common.
func key(frames []Frame) string {
	var b strings.Builder
	for _, f := range frames {
		b.WriteString(f.where())
		b.WriteByte('\n')
	}
	return b.String()
}

// locks are the functions in which a process waits for a compile lock: torch's
// and FlashInfer's file baton, and the filelock package.
var locks = []struct{ file, name string }{
	{"file_baton.py", "file baton"}, {"_api.py", "file lock"}, {"_unix.py", "file lock"}, {"filelock.py", "file lock"},
}

// lockOf names the kind of compile lock that a stack waits for; "" = none.
func lockOf(frames []Frame) string {
	for _, f := range frames {
		for _, l := range locks {
			waits := strings.Contains(f.Func, "wait") || strings.Contains(f.Func, "acquire")
			if path.Base(f.File) == l.file && waits && (l.name == "file baton" || strings.Contains(f.File, "filelock")) {
				return l.name
			}
		}
	}
	return ""
}
