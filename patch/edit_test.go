package patch

import (
	"errors"
	"strings"
	"testing"
)

func TestEdits(t *testing.T) {
	t.Parallel()
	const text = "# x = 1\ns = \"\"\"\nclass A:\n    x = 1\n\"\"\"\n" + twins
	tests := []struct {
		name  string
		edits []Edit
		want  string // "" = it does not fit
		told  string
	}{
		{name: "in one class", edits: []Edit{{Find: "x = 1", Replace: "x = 2", Within: "class B"}},
			want: strings.Replace(text, "class B:\n    def f(self):\n        x = 1", "class B:\n    def f(self):\n        x = 2", 1)},
		{name: "nested", edits: []Edit{{Find: "return x", Replace: "return y", Within: "class A / def f"}},
			want: strings.Replace(text, "return x", "return y", 1)},
		{name: "all of them", edits: []Edit{{Find: "return x", Replace: "return y", Count: 2}}, want: strings.ReplaceAll(text, "return x", "return y")},
		{name: "more than said", edits: []Edit{{Find: "return x", Replace: "return y"}}, told: "occurs 2 times, not 1"},
		{name: "fewer than said", edits: []Edit{{Find: "return x", Replace: "y", Within: "class A", Count: 2}}, told: "occurs 1 times in class A, not 2"},
		{name: "elsewhere", edits: []Edit{{Find: "s = ", Replace: "t = ", Within: "class A"}}, told: "stands in line 2, in no class or def"},
		{name: "two scopes of a name", edits: []Edit{{Find: "x", Replace: "y", Within: "def f"}}, told: "there 2 times (lines 7, 13)"},
		{name: "no such scope", edits: []Edit{{Find: "x", Replace: "y", Within: "class C"}}, told: "there is no class C"},
		{name: "edits that meet", edits: []Edit{{Find: "class A:\n    def", Replace: "", Within: "class A"}, {Find: "def f(self):\n        x", Replace: "", Within: "class A"}}, told: "two edits meet in line 7"},
		{name: "none sees another's", edits: []Edit{{Find: "class A:\n    def", Replace: "class A:\n    return x\n    def", Within: "class A"}, {Find: "return x", Replace: "return z", Within: "class A"}},
			want: strings.Replace(strings.Replace(text, "class A:\n    def", "class A:\n    return x\n    def", 1), "        return x\n\n\nclass B", "        return z\n\n\nclass B", 1)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			made, err := applyEdits([]byte(text), test.edits)
			var m *mismatch
			switch {
			case test.want != "" && (err != nil || string(made) != test.want):
				t.Errorf("%v\n%s", err, made)
			case test.want == "" && !errors.As(err, &m):
				t.Errorf("error is %v", err)
			case test.want == "" && !strings.Contains(m.reason+m.hint, test.told):
				t.Errorf("told %q, %q", m.reason, m.hint)
			}
		})
	}
}

// Whether a change is there is a matter of code, not of words.
func TestAnchorsAreCode(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{
		"x = [\n    \"cutlass\",\n]\n":                   true,
		"x = [\n    # \"cutlass\",\n]\n":                 false,
		"'''\n\"cutlass\",\n'''\n":                       false,
		"x = [\n    # \"cutlass\",\n    \"cutlass\",\n]": true,
		"x = 'a # b'; y = [\"cutlass\",]\n":              true,
		"x = 'it''s'  # \"cutlass\",\n":                  false,
		"x = \"\\\"cutlass\\\",\"\n":                     false,
		"":                                               false,
	}
	for text, want := range tests {
		if got := readSource([]byte(text)).holds(Anchor{Find: `"cutlass",`}); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// What adds to a text leaves it in place, and what takes away leaves a part:
// applying again must be known in both cases where the original is known, and
// where it is not only if the text itself proves it.
func TestAppliedIsKnownAsSuch(t *testing.T) {
	t.Parallel()
	base := "def f():\n    a()\n    b()\n"
	for name, test := range map[string]struct {
		Edit
		unlisted State
	}{
		"adds after":  {Edit{Find: "    a()\n", Replace: "    a()\n    new()\n"}, AppliedForeign},
		"adds before": {Edit{Find: "    b()\n", Replace: "    new()\n    b()\n"}, AppliedForeign},
		"takes away":  {Edit{Find: "    a()\n    b()\n", Replace: "    b()\n"}, Drifted},
		"rewrites":    {Edit{Find: "a()", Replace: "c()"}, Drifted},
	} {
		c := candidate{change: change{edits: []Edit{test.Edit}}, named: true}
		fresh := c.judge([]byte(base), []byte(base), origin{release: Hash([]byte(base))})
		if fresh.state != Pristine {
			t.Errorf("%s: fresh is %s: %s", name, fresh.state, fresh.reason)
			continue
		}
		for _, again := range []struct {
			origin
			want State
		}{{origin{release: Hash([]byte(base))}, WasApplied}, {origin{}, test.unlisted}} {
			if got := c.judge(fresh.after, fresh.after, again.origin); got.state != again.want {
				t.Errorf("%s, release %q: applied is %s: %s, want %s", name, again.release, got.state, got.reason, again.want)
			}
		}
	}
}

// What a change would leave may stand in a file that never held what it looks
// for: that is no proof, whatever is known of the file, and the plan says what
// would be one.
func TestThereByChance(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit Edit
		text string
		hint string
	}{
		"rewrite":      {Edit{Find: "return compute(1)", Replace: "return 1"}, "def g():\n    return 1\n", "present = "},
		"deletion":     {Edit{Find: "X = [\n    \"zz\",", Replace: "X = ["}, "X = [\n    \"a\",\n]\n", "present = "},
		"line ends":    {Edit{Find: "X = [\n    \"a\",", Replace: "X = ["}, "X = [\r\n    \"a\",\r\n]\r\n", `ends its lines with \r\n`},
		"its own ends": {Edit{Find: "X = [\r\n    \"a\",", Replace: "X = ["}, "X = [\n    \"a\",\n]\n", `find ends its lines with \r\n`},
		"too often":    {Edit{Find: "x", Replace: "x, y"}, "f(x, y)\ng(x)\n", "count = 2"},
	} {
		text := []byte(test.text)
		c := candidate{change: change{edits: []Edit{test.edit}}, named: true}
		for _, o := range []origin{{}, {release: Hash(text)}, {release: Hash([]byte("another"))}} {
			if got := c.judge(text, text, o); got.state != Drifted || got.fits || !strings.Contains(got.hint, test.hint) {
				t.Errorf("%s, release %q: %s: %s (%s)", name, o.release, got.state, got.reason, got.hint)
			}
		}
	}
	text := []byte("def f():\n    return 1\n")
	c := candidate{change: change{edits: []Edit{{Find: "return compute(1)", Replace: "return 1"}}}, named: true,
		present: []Anchor{{Find: "return 1", Within: "def f"}}}
	if got := c.judge(text, text, origin{}); got.state != AppliedForeign {
		t.Errorf("with present: %s: %s", got.state, got.reason)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	edit := []Edit{{Find: "a", Replace: "b"}}
	for name, p := range map[string]Patch{
		"nothing":             {},
		"no change":           {Name: "x", Module: "m"},
		"no target":           {Name: "x", Edits: edit},
		"bad name":            {Name: "../x", Module: "m", Edits: edit},
		"bad module":          {Name: "x", Module: "a..b", Edits: edit},
		"module and file":     {Name: "x", Module: "m", File: "/f", Edits: edit},
		"relative file":       {Name: "x", File: "f.py", Edits: edit},
		"edit and diff":       {Name: "x", Module: "m", Edits: edit, Diff: "d"},
		"empty find":          {Name: "x", Module: "m", Edits: []Edit{{Replace: "b"}}},
		"no difference":       {Name: "x", Module: "m", Edits: []Edit{{Find: "a", Replace: "a"}}},
		"negative count":      {Name: "x", Module: "m", Edits: []Edit{{Find: "a", Replace: "b", Count: -1}}},
		"bad scope":           {Name: "x", Module: "m", Edits: []Edit{{Find: "a", Within: "function f"}}},
		"unknown use":         {Use: "nosuch"},
		"use with content":    {Use: founding, Edits: edit},
		"bad method":          {Name: "x", Module: "m", Edits: edit, Method: "magic"},
		"bad policy":          {Use: founding, OnRefused: "ignore"},
		"bad marker":          {Name: "x", Module: "m", Edits: edit, Proof: Proof{Marker: "("}},
		"bad version":         {Name: "x", Variants: []Variant{{Module: "m", Edits: edit, Version: "about 3"}}},
		"bad hash":            {Name: "x", Variants: []Variant{{Module: "m", Edits: edit, SHA256Before: []string{"abc"}}}},
		"edit beside variant": {Name: "x", Module: "m", Edits: edit, Variants: []Variant{{Edits: edit}}},
		"requires nothing":    {Name: "x", Module: "m", Edits: edit, Requires: []Requirement{{Flag: "--x"}}},
	} {
		if err := p.Validate(); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	for name, p := range map[string]Patch{
		"edit":    {Name: "x", Module: "m.n", Edits: edit},
		"diff":    {Name: "x", Diff: "/p/my.patch"},
		"shipped": {Use: founding, Method: MethodOverlay, OnUnproven: UnprovenFail},
	} {
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestShippedPatchesAreGood(t *testing.T) {
	t.Parallel()
	for _, name := range ShippedNames() {
		p, _ := Shipped(name)
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
		if err := (Patch{Use: name}).Validate(); err != nil {
			t.Error(err)
		}
		resolved, err := Patch{Use: name, OnUnproven: UnprovenFail}.Resolved()
		if err != nil || resolved.OnUnproven != UnprovenFail || resolved.OnRefused != RefusedAbort || resolved.Proof != p.Proof {
			t.Errorf("%s resolves to %+v, %v", name, resolved, err)
		}
	}
}
