package patch

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aymanbagabas/go-udiff"
	"pgregory.net/rapid"
)

const twins = `class A:
    def f(self):
        x = 1
        return x


class B:
    def f(self):
        x = 1
        return x
`

const twinDiff = `--- a/tiny/twins.py
+++ b/tiny/twins.py
@@ -1,5 +1,5 @@
 class A:
     def f(self):
-        x = 1
+        x = 2
         return x
 
`

func oneDiff(t *testing.T, text string) fileDiff {
	t.Helper()
	diffs, err := parseDiff([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return diffs[0]
}

// lookalike fits A by its line numbers, and B by its text alone.
const lookalike = `--- a/tiny/twins.py
+++ b/tiny/twins.py
@@ -2,3 +2,3 @@
     def f(self):
-        x = 1
+        x = 2
         return x
`

// T1: the code of A has gone and B looks like it. A tool that searches changes
// B and says that all is well.
func TestDiffDoesNotWander(t *testing.T) {
	t.Parallel()
	d := oneDiff(t, lookalike)
	if made, err := d.apply([]byte(twins)); err != nil || string(made) != strings.Replace(twins, "x = 1", "x = 2", 1) {
		t.Fatalf("%v\n%s", err, made)
	}
	drifted := strings.Replace(twins, "x = 1", "x = 17", 1)
	_, err := d.apply([]byte(drifted))
	var m *mismatch
	if !errors.As(err, &m) {
		t.Fatalf("error is %v", err)
	}
	if !strings.Contains(m.hint, "class B / def f") {
		t.Errorf("the hint is %q", m.hint)
	}
}

// T12, T13: a header that counts wrongly, either way, and what else a diff may
// say that would be passed over or done unasked.
func TestDiffIsStrict(t *testing.T) {
	t.Parallel()
	git := "diff --git a/x.py b/x.py\n"
	for name, text := range map[string]string{
		"count too small":      strings.Replace(twinDiff, "+        x = 2\n", "+        x = 2\n+        y = 3\n", 1)[:len(twinDiff)] + "+        z = 3\n",
		"surplus line":         strings.TrimSuffix(twinDiff, " \n") + " \n+        late = 1\n",
		"surplus context":      twinDiff + " more\n",
		"surplus removal":      twinDiff + "-more\n",
		"count too large":      strings.Replace(twinDiff, "-1,5 +1,5", "-1,6 +1,6", 1),
		"no hunk":              "just a letter\n",
		"empty":                "",
		"new file":             "--- /dev/null\n+++ b/x.py\n@@ -0,0 +1 @@\n+x\n",
		"deleted file":         "--- a/x.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
		"renamed file":         git + "similarity index 90%\nrename from x.py\nrename to y.py\n",
		"mode":                 git + "old mode 100644\nnew mode 100755\n",
		"binary":               git + "index 1..2 100644\nGIT binary patch\nliteral 0\nHcmV?d00001\n\n",
		"leads out":            strings.ReplaceAll(twinDiff, "tiny/twins.py", "../../etc/x.py"),
		"absolute":             "--- /etc/x.py\n+++ /etc/x.py\n@@ -1 +1 @@\n-a\n+b\n",
		"the same file twice":  twinDiff + twinDiff,
		"count that overflows": strings.Replace(twinDiff, "-1,5", "-1,99999999999999999999", 1),
	} {
		if diffs, err := parseDiff([]byte(text)); err == nil {
			t.Errorf("%s: taken as %d files:\n%s", name, len(diffs), text)
		}
	}
	for name, text := range map[string]string{
		"mail":              "From: me\nSubject: x\n\n- a list\n- of things\n---\n tiny/twins.py | 2 +-\n\n" + twinDiff + "-- \n2.39.5\n",
		"two files":         twinDiff + strings.ReplaceAll(twinDiff, "twins", "other"),
		"sql-like removal":  "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,1 @@\n--- comment\n x\n",
		"no newline at end": "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n\\ No newline at end of file\n",
	} {
		if _, err := parseDiff([]byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// T11: other line ends are no match, and the person is told.
func TestDiffAndLineEnds(t *testing.T) {
	t.Parallel()
	dos := strings.NewReplacer("\n", "\r\n")
	for hint, c := range map[string]struct{ diff, text string }{
		"the diff has to as well": {twinDiff, dos.Replace(twins)},
		"the file does not":       {dos.Replace(twinDiff), twins},
	} {
		_, err := oneDiff(t, c.diff).apply([]byte(c.text))
		var m *mismatch
		if !errors.As(err, &m) || !strings.Contains(m.hint, hint) {
			t.Errorf("error is %v, without the hint %q", err, hint)
		}
	}
}

// T14: what a diff does, its reverse undoes, byte for byte.
func TestReverseUndoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before, after := pythonish().Draw(t, "before"), pythonish().Draw(t, "after")
		text := udiff.Unified("a/x.py", "b/x.py", string(before), string(after))
		diffs, err := parseDiff([]byte(text))
		if err != nil {
			if bytes.Equal(before, after) || len(before) == 0 || len(after) == 0 || bytes.Contains(before, []byte("\r")) != bytes.Contains(after, []byte("\r")) {
				return
			}
			t.Fatalf("%v\n%s", err, text)
		}
		made, err := diffs[0].apply(before)
		if err != nil || !bytes.Equal(made, after) {
			t.Fatalf("forward gives %q, %v\n%s", made, err, text)
		}
		back, err := diffs[0].reverse().apply(made)
		if err != nil || !bytes.Equal(back, before) {
			t.Fatalf("backward gives %q, %v\n%s", back, err, text)
		}
	})
}

// A diff over two files, as git writes it, is one patch: both or neither.
// A diff without lines around it would fit by chance; with them, at its lines,
// it tells that it was applied.
func TestWhatADiffProves(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		"@@ -1,2 +1,2 @@\n def f():\n-    return compute(1)\n+    return 1\n":           true,
		"@@ -2 +2 @@\n-    return compute(1)\n+    return 1\n":                          false,
		"@@ -1,3 +1,2 @@\n def f():\n-    log()\n     return 1\n":                       true,
		"@@ -1,2 +1 @@\n def f():\n-    log()\n":                                        false,
		"@@ -1,2 +1,2 @@\n \n-    return compute(1)\n+    return 1\n":                   false,
		"@@ -1 +1,2 @@\n def f():\n+    log()\n@@ -9,2 +10 @@\n def g():\n-    log()\n": false,
	} {
		diffs, err := parseDiff([]byte("--- a/m.py\n+++ b/m.py\n" + body))
		if err != nil {
			t.Fatal(err)
		}
		if got := diffs[0].proves(); got != want {
			t.Errorf("%s proves: %v", body, got)
		}
	}
}

func TestDiffOverTwoFiles(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	path := filepath.Join(t.TempDir(), "my.patch")
	text := "diff --git a/python/tiny/other.py b/python/tiny/other.py\n--- a/python/tiny/other.py\n+++ b/python/tiny/other.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n" +
		"diff --git a/python/tiny/core/switch.py b/python/tiny/core/switch.py\n--- a/python/tiny/core/switch.py\n+++ b/python/tiny/core/switch.py\n@@ -1,4 +1,4 @@\n class Switch:\n     def on(self):\n-        return False  # TODO\n+        return True\n \n"
	v.must(os.WriteFile(path, []byte(text), 0o644))
	before := snapshot(t, v.root)
	l := ledger(t)
	p := plan(t, l, v, Patch{Name: "two", Diff: path})
	if len(p.Targets) != 2 || len(p.Refused()) > 0 {
		t.Fatalf("targets are %+v", p.Targets)
	}
	apply(t, l, p, "night")
	if got := v.run("import tiny.other; from tiny.core.switch import Switch; print(tiny.other.x, Switch().on())", "PYTHONDONTWRITEBYTECODE=1"); got != "2 True" {
		t.Errorf("patched code says %s", got)
	}
	revert(t, l, "night")
	same(t, before, snapshot(t, v.root))

	v.write(v.path("tiny/other.py"), "x = 11\n")
	for _, got := range plan(t, l, v, Patch{Name: "two", Diff: path}).Targets {
		if !got.Refused {
			t.Errorf("one file does not fit, and %s is not refused", got.Path)
		}
	}
}

func FuzzDiff(f *testing.F) {
	f.Add([]byte(twinDiff), []byte(twins))
	f.Add([]byte("@@ -0,0 +1 @@\n+x\n"), []byte(""))
	f.Fuzz(func(t *testing.T, diff, text []byte) {
		diffs, err := parseDiff(diff)
		if err != nil {
			return
		}
		for _, d := range diffs {
			made, err := d.apply(text)
			if err != nil {
				continue
			}
			if back, err := d.reverse().apply(made); err != nil || !bytes.Equal(back, text) {
				t.Errorf("not undone: %v\n%q\n%q", err, text, back)
			}
		}
	})
}

func FuzzEdit(f *testing.F) {
	f.Add([]byte(twins), "x = 1", "x = 2", "class A / def f", 1)
	f.Add([]byte("def f(:\n\"\"\""), "(", "", "", 0)
	f.Fuzz(func(t *testing.T, text []byte, find, replace, within string, count int) {
		e := Edit{Find: find, Replace: replace, Within: within, Count: count}
		if e.validate() != nil {
			return
		}
		made, err := applyEdits(text, []Edit{e})
		if err != nil {
			return
		}
		if want := len(text) + e.times()*(len(replace)-len(find)); len(made) != want {
			t.Errorf("%d bytes, want %d", len(made), want)
		}
		(candidate{change: change{edits: []Edit{e}}, present: []Anchor{{Find: find, Within: within}}}).judge(text, text, origin{})
	})
}
