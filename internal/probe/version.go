package probe

import version "github.com/aquasecurity/go-pep440-version"

// firstHonest is the first SGLang whose /health answers 503 while it starts.
// Before it, /health is a static 200.
var firstHonest = version.MustParse("0.4.10.post2")

// honesty is what is known about /health.
type honesty int

const (
	unknown honesty = iota
	static
	honest
)

// honestyOf judges a version. A build without a real one (0.0.0.dev1) tells
// nothing.
func honestyOf(text string) honesty {
	v, err := version.Parse(text)
	switch {
	case text == "" || err != nil || v.LessThan(version.MustParse("0.1")):
		return unknown
	case v.LessThan(firstHonest):
		return static
	}
	return honest
}
