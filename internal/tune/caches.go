package tune

import (
	"fmt"
	"slices"
)

// Caches is what lay in the folders of compiled kernels and tuning results at a
// moment.
type Caches struct {
	Folders []CacheFolder `json:"folders,omitempty"`
	// Tactics are the results of FlashInfer's autotuner: a digest of what each file
	// says, by its name, which tells the kernels, the GPU and the rank that it is for.
	Tactics map[string]string `json:"tactics,omitempty"`
	Problem string            `json:"problem,omitempty"` // why all of it is unknown
}

// CacheFolder is one folder.
type CacheFolder struct {
	Path   string `json:"path"`
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
	Digest string `json:"digest,omitempty"` // of names and contents
	Text   string `json:"text,omitempty"`   // why there is no digest
}

// retuned counts the files of tactics that both have, and those of them that say
// something else.
func (c *Caches) retuned(o *Caches) (differ, both int) {
	if c == nil || o == nil {
		return 0, 0
	}
	for name, digest := range c.Tactics {
		if other, ok := o.Tactics[name]; ok {
			both++
			if other != digest {
				differ++
			}
		}
	}
	return differ, both
}

// Changed tells whether a launch left the caches otherwise than it found them: it
// compiled or tuned. Where nothing is known of them it did not.
func (l LaunchSummary) Changed() bool {
	if l.Found == nil || l.Ended == nil || l.Ended.Caches == nil {
		return false
	}
	return !slices.Equal(l.Found.Folders, l.Ended.Caches.Folders)
}

// tactics says of a trial whose kernels were tuned otherwise than those of the
// baseline beside it that they were: then not only its settings were compared. ""
// = they were not, or nobody knows.
func (n *Night) tactics(t Trial) string {
	launches, unlike, differ, both := 0, 0, 0, 0
	for _, l := range n.samples(t.ID, Screen, Narrow, Confirm) {
		b := n.nearest(l.launch)
		if b == nil {
			continue
		}
		launches++
		if d, of := l.ended.Caches.retuned(b.ended.Caches); d > 0 {
			unlike++
			differ, both = d, of
		}
	}
	if unlike == 0 || t.Baseline() {
		return ""
	}
	return fmt.Sprintf("in %d of %d launches its kernels were tuned otherwise than those of the baseline beside it (%d of %d results that both have)",
		unlike, launches, differ, both)
}

// nearest is the launch of the baseline that counts and lies nearest to another;
// nil: there is none.
func (n *Night) nearest(l *launch) (b *launch) {
	for _, s := range n.samples(BaselineID, Screen, Narrow, Confirm) {
		if b == nil || max(s.Launch-l.Launch, l.Launch-s.Launch) < max(b.Launch-l.Launch, l.Launch-b.Launch) {
			b = s.launch
		}
	}
	return b
}
