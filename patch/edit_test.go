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
// applying again must be known in both cases.
func TestAppliedIsKnownAsSuch(t *testing.T) {
	t.Parallel()
	base := "def f():\n    a()\n    b()\n"
	for name, e := range map[string]Edit{
		"adds after":  {Find: "    a()\n", Replace: "    a()\n    new()\n"},
		"adds before": {Find: "    b()\n", Replace: "    new()\n    b()\n"},
		"takes away":  {Find: "    a()\n    b()\n", Replace: "    b()\n"},
		"rewrites":    {Find: "a()", Replace: "c()"},
	} {
		c := candidate{change: change{edits: []Edit{e}}, named: true}
		fresh := c.judge([]byte(base), []byte(base), origin{release: Hash([]byte(base))})
		if fresh.state != Pristine {
			t.Errorf("%s: fresh is %s: %s", name, fresh.state, fresh.reason)
			continue
		}
		for who, o := range map[string]origin{"known": {release: Hash([]byte(base))}, "unlisted": {}} {
			again := c.judge(fresh.after, fresh.after, o)
			if again.state != WasApplied && again.state != AppliedForeign {
				t.Errorf("%s, %s: applied is %s: %s", name, who, again.state, again.reason)
			}
		}
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
