package patch

import "time"

// State is what a file's content says about a patch. The values are an
// interface to scripts.
type State string

// The states of a file before a launch.
const (
	Pristine       State = "pristine"        // as released; the patch fits
	WasApplied     State = "applied"         // exactly what the patch makes of it
	AppliedForeign State = "applied_foreign" // the change is there, the file differs otherwise
	Obsolete       State = "obsolete"        // upstream has the change
	Drifted        State = "drifted"         // changed by somebody; the patch is not for this content
	Missing        State = "missing"         // no such module or file
	Unsupported    State = "unsupported"     // no variant is for this release
)

// Target is one file of one patch, as a plan found it.
type Target struct {
	Patch   string `json:"patch"`
	Path    string `json:"path,omitempty"` // as the interpreter resolves it
	Module  string `json:"module,omitempty"`
	Package string `json:"package,omitempty"` // distribution
	Version string `json:"version,omitempty"` // "" = not known
	Variant int    `json:"variant,omitempty"` // of the patch, from 1; 0 = none

	State   State    `json:"state"`
	Refused bool     `json:"refused"`         // this patch cannot be used as things are
	Reason  string   `json:"reason"`          // one sentence for a person
	Hint    string   `json:"hint,omitempty"`  // what may help
	Notes   []string `json:"notes,omitempty"` // worth knowing, no obstacle

	Before string `json:"sha256_before,omitempty"` // of the file as it is
	After  string `json:"sha256_after,omitempty"`  // with every patch of the plan
	Diff   string `json:"diff,omitempty"`          // unified, this patch alone

	File      FileFacts `json:"file,omitzero"`
	Bytecode  string    `json:"bytecode,omitempty"` // none | timestamp | checked-hash | unchecked-hash | unreadable
	Method    string    `json:"method"`
	OnRefused string    `json:"on_refused"`
}

// FileFacts are what has to come back with a revert, and what stands in the way
// of a change.
type FileFacts struct {
	Mode     string    `json:"mode,omitempty"` // "-rw-r--r--"
	UID      uint32    `json:"uid"`
	GID      uint32    `json:"gid"`
	ModTime  time.Time `json:"mtime,omitzero"`
	Links    uint64    `json:"links,omitempty"`   // 2 and more: a cache shares the file
	Symlink  string    `json:"symlink,omitempty"` // where it points
	FS       string    `json:"fs,omitempty"`      // "ext4", "overlay", ...
	ReadOnly bool      `json:"read_only,omitempty"`
}
