package stacks

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sglaunch/internal/proc"
)

// What py-spy 0.4.3 prints, shortened: the main thread does not come first.
const pySpyText = `[
 {"pid": 2714, "thread_id": 140180907198144, "thread_name": "watchdog", "os_thread_id": 2843, "active": false, "owns_gil": false,
  "frames": [{"name": "Thread.run", "filename": "/usr/lib/python3.11/threading.py", "module": null, "short_filename": "threading.py", "line": 982, "locals": null, "is_entry": false, "is_shim_entry": false}],
  "process_info": null},
 {"pid": 2714, "thread_id": 140180921297792, "thread_name": "MainThread", "os_thread_id": 2714, "active": false, "owns_gil": false,
  "frames": [
   {"name": "Condition.wait", "filename": "/usr/lib/python3.11/threading.py", "module": null, "short_filename": "threading.py", "line": 327, "locals": null},
   {"name": "all_reduce", "filename": "/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", "module": null, "short_filename": "torch/distributed/distributed_c10d.py", "line": 2501, "locals": null},
   {"name": "<module>", "filename": "/h.py", "module": null, "short_filename": null, "line": 8, "locals": null}],
  "process_info": null}
]`

func TestPySpy(t *testing.T) {
	got, err := parsePySpy([]byte(pySpyText), 2714)
	want := []Thread{
		{"MainThread", []Frame{{"Condition.wait", "threading.py", 327}, {"all_reduce", "torch/distributed/distributed_c10d.py", 2501}, {"<module>", "/h.py", 8}}},
		{"watchdog", []Frame{{"Thread.run", "threading.py", 982}}},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if got := place(got[0].Frames); got != "all_reduce (distributed_c10d.py)" {
		t.Errorf("place: %q", got)
	}
	for _, text := range []string{"", "[]", "{}", "null", `[{"thread_name": "x"}]`, "Error: no such process"} {
		if threads, err := parsePySpy([]byte(text), 1); err == nil {
			t.Errorf("%q was read: %v", text, threads)
		}
	}
}

// What gdb 13 prints, shortened, and frames of C++ and of a stripped library.
const gdbText = `[New LWP 2843]
[Thread debugging using libthread_db enabled]
__futex_abstimed_wait_common64 (private=<optimized out>, abstime=0x0) at ./nptl/futex-internal.c:57
#0  __futex_abstimed_wait_common64 (private=<optimized out>, abstime=0x0) at ./nptl/futex-internal.c:57
#1  0x00007f7e698a3f7b in __GI___futex_abstimed_wait_cancelable64 (futex_word=0x564827c1a7e0) at ./nptl/futex-internal.c:139
#2  0x00007f0011223344 in ?? () from /usr/lib/x86_64-linux-gnu/libcuda.so.1
#3  0x00007f0011223355 in cuModuleLoadData () from /usr/lib/x86_64-linux-gnu/libcuda.so.1
#4  0x00007f0011223366 in std::function<void (int)>::operator()(int) const (this=0x1, __args#0=3) at /usr/include/c++/12/bits/std_function.h:591
#5  0x0000000000401136 in main ()
`

func TestGDB(t *testing.T) {
	got, err := parseGDB([]byte(gdbText))
	want := []Thread{{"", []Frame{
		{"__futex_abstimed_wait_common64", "./nptl/futex-internal.c", 57},
		{"__GI___futex_abstimed_wait_cancelable64", "./nptl/futex-internal.c", 139},
		{"??", "libcuda.so.1", 0},
		{"cuModuleLoadData", "libcuda.so.1", 0},
		{"std::function<void (int)>::operator()(int) const", "/usr/include/c++/12/bits/std_function.h", 591},
		{"main", "", 0},
	}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if got := place(got[0].Frames[3:]); got != "cuModuleLoadData (libcuda.so.1)" {
		t.Errorf("place: %q", got)
	}
	if _, err := parseGDB([]byte("ptrace: Operation not permitted.\nNo stack.\n")); err == nil {
		t.Error("a refusal was read as a stack")
	}
}

func FuzzParsers(f *testing.F) {
	f.Add(pySpyText)
	f.Add(gdbText)
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func() ([]Thread, error){
			func() ([]Thread, error) { return parsePySpy([]byte(text), 1) },
			func() ([]Thread, error) { return parseGDB([]byte(text)) },
		} {
			threads, err := parse()
			if err == nil && (len(threads) == 0 || len(threads[0].Frames) == 0) {
				t.Error("neither a stack nor an error")
			}
			_ = Stack{Threads: threads}.String()
		}
	})
}

func TestKernel(t *testing.T) {
	got, err := kernel(proc.Picture{Stack: "[<0>] futex_do_wait+0x46/0x90\n[<0>] __futex_wait+0x8a/0x100", Wchan: "x"})
	if diff := cmp.Diff([]Thread{{Frames: []Frame{{Func: "futex_do_wait"}, {Func: "__futex_wait"}}}}, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	got, err = kernel(proc.Picture{Wchan: "nfs_wait_bit_killable"})
	if diff := cmp.Diff([]Thread{{Frames: []Frame{{Func: "nfs_wait_bit_killable"}}}}, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if _, err = kernel(proc.Picture{Stack: "[<0>] unmap_page_range+0x1/0x2\n[<0>] exit_mmap+0x3/0x4\n[<0>] do_exit+0x5/0x6", Wchan: "x"}); err == nil {
		t.Error("a process that is ending stands somewhere")
	}
	if _, err = kernel(proc.Picture{Stack: "[<0>] irqentry_exit_to_user_mode+0x1/0x2"}); err == nil {
		t.Error("a process that runs stands somewhere")
	}
	if _, err = kernel(proc.Picture{}); err == nil {
		t.Error("nothing is no place")
	}
}

// at is a rank that stands in these functions of a file, innermost first.
func at(rank int, file string, funcs ...string) Stack {
	s := Stack{Process: Process{ID: proc.ID{PID: rank + 1}, Rank: fmt.Sprintf("TP%d", rank)}, Tool: "py-spy", Threads: []Thread{{}}}
	for i, f := range funcs {
		s.Threads[0].Frames = append(s.Threads[0].Frames, Frame{f, file, 10 + rank + i})
	}
	return s
}

func TestCompare(t *testing.T) {
	all := func(n int, other ...Stack) []Stack {
		var ranks []Stack
		for i := range n {
			ranks = append(ranks, at(i, "torch/distributed/distributed_c10d.py", "all_reduce", "forward"))
		}
		return append(ranks, other...)
	}
	loads := at(7, "flashinfer/jit/core.py", "load_module", "forward")
	baton := at(7, "torch/utils/file_baton.py", "wait", "load")
	file := at(1, "filelock/_api.py", "acquire", "load")
	blind := Stack{Process: Process{ID: proc.ID{PID: 99}, Rank: "TP9"}, Errs: []string{"py-spy did not answer in time"}}
	kern := at(0, "", "futex_do_wait")
	kern.Tool = "kernel"
	for name, c := range map[string]struct {
		first, second []Stack
		want          Finding
	}{
		"nothing":    {nil, nil, Finding{}},
		"unseen":     {[]Stack{blind}, nil, Finding{}},
		"one":        {all(1), nil, Finding{Text: "TP0 in all_reduce (distributed_c10d.py)"}},
		"all":        {all(8), nil, Finding{Text: "all 8 ranks in all_reduce (distributed_c10d.py)"}},
		"one behind": {all(7, loads), nil, Finding{Text: "7 of 8 ranks in all_reduce (distributed_c10d.py); TP7 in load_module (core.py)", Suspects: []string{"TP7"}}},
		"twice": {all(7, loads), all(7, loads), Finding{
			Text:     "7 of 8 ranks in all_reduce (distributed_c10d.py); TP7 in load_module (core.py); the same 4s later",
			Suspects: []string{"TP7"}, Hung: true}},
		"one moves": {all(7, loads), all(7, at(7, "flashinfer/jit/core.py", "load_module", "backward")), Finding{
			Text:     "7 of 8 ranks in all_reduce (distributed_c10d.py); TP7 in load_module (core.py); TP7 moved within 4s",
			Suspects: []string{"TP7"}}},
		"one not seen again": {all(7, loads), all(7), Finding{
			Text: "7 of 8 ranks in all_reduce (distributed_c10d.py); TP7 in load_module (core.py)", Suspects: []string{"TP7"}}},
		"half and half": {all(1, at(1, "a.py", "load")), nil, Finding{Text: "TP0 in all_reduce (distributed_c10d.py); TP1 in load (a.py)"}},
		"a baton":       {all(7, baton), nil, Finding{Text: "7 of 8 ranks in all_reduce (distributed_c10d.py); TP7 in wait (file_baton.py)", Suspects: []string{"TP7"}, Lock: "file baton"}},
		"a file lock":   {all(1, file), nil, Finding{Text: "TP0 in all_reduce (distributed_c10d.py); TP1 in acquire (_api.py)", Lock: "file lock"}},
		"one place, two ways": {all(3, at(3, "torch/distributed/distributed_c10d.py", "all_reduce", "gather_logits")), nil, Finding{
			Text:     "3 of 4 ranks in all_reduce (distributed_c10d.py); TP3 in all_reduce (distributed_c10d.py) by way of gather_logits (distributed_c10d.py)",
			Suspects: []string{"TP3"}}},
		"the kernel alone": {[]Stack{kern}, []Stack{kern}, Finding{Text: "TP0 in futex_do_wait"}},
		"many ways": {[]Stack{at(0, "a.py", "a"), at(1, "a.py", "b"), at(2, "a.py", "c"), at(3, "a.py", "d"), at(4, "a.py", "e"), at(5, "a.py", "f")}, nil, Finding{
			Text: "TP0 in a (a.py); TP1 in b (a.py); TP2 in c (a.py); TP3 in d (a.py); 2 elsewhere"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Compare(c.first, c.second, 4*time.Second)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Whatever the stacks are: the suspects are fewer than half, no rank is both, and
// the order of the ranks changes nothing.
func TestCompareAlways(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "ranks")
		var first []Stack
		for i := range n {
			first = append(first, at(i, "a.py", rapid.SampledFrom([]string{"f", "g", "h"}).Draw(t, "place"), "run"))
		}
		f := Compare(first, first, time.Second)
		if 2*len(f.Suspects) >= n && n > 1 || !f.Hung || f.Text == "" {
			t.Fatalf("of %d ranks: %+v", n, f)
		}
		shuffled := rapid.Permutation(first).Draw(t, "order")
		if got := Compare(shuffled, first, time.Second); strings.Join(got.Suspects, ",") != strings.Join(f.Suspects, ",") || !got.Hung {
			t.Fatalf("in another order: %+v, not %+v", got, f)
		}
	})
}
