package phases

import (
	"bytes"
	"fmt"
)

// Check runs a rule's own examples and lists what is wrong with them.
func (r *Rule) Check() (problems []string) {
	for _, hit := range r.Hits {
		if why := r.missReason([]byte(hit)); why != "" {
			problems = append(problems, fmt.Sprintf("does not match its hit %q: %s", hit, why))
		}
	}
	for _, miss := range r.Misses {
		if r.missReason([]byte(miss)) == "" {
			problems = append(problems, fmt.Sprintf("matches its near-miss %q", miss))
		}
	}
	return problems
}

// missReason says why a rule does not match a whole line, "" where it does.
func (r *Rule) missReason(line []byte) string {
	for _, msg := range messages(line) {
		if !bytes.Contains(msg, []byte(r.Lit)) {
			continue
		}
		if _, ok := r.match(msg); ok {
			return ""
		}
	}
	if !bytes.Contains(line, []byte(r.Lit)) {
		return fmt.Sprintf("the literal %q is not in it", r.Lit)
	}
	return "the pattern does not match the message"
}

// Match lists the ids of the rules that match a line, in their order.
func (s *RuleSet) Match(line []byte) (ids []string) {
	for _, r := range s.rules {
		if r.missReason(line) == "" {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// messages takes a line apart as the tracker does: the message after its
// prefixes, what was glued before it, and the descriptions of bars.
func messages(line []byte) [][]byte {
	var p prefixer
	h := header{number: -1, marks: markAll}
	var all [][]byte
	if before := p.parse(line, &h); before != nil {
		all = append(all, before)
	}
	all = append(all, h.msg)
	for rest, text := []byte(nil), h.msg; ; text = rest {
		b, after, ok := nextBar(text)
		if !ok {
			return all
		}
		all = append(all, b.desc)
		rest = after
	}
}

// Meaning says in a few words what a line of this rule means.
func (r *Rule) Meaning() string {
	switch {
	case r.Kind == RuleFault && r.Cause != "":
		return fmt.Sprintf("%s: %s", r.Severity, r.Cause)
	case r.Kind == RuleFault:
		return string(r.Severity)
	case r.Phase != nil:
		return r.Phase.String()
	case r.Activity != "":
		return r.Activity
	}
	return "-"
}

// Versions are the SGLang releases that print the line: "0.4.1-", "0.5.2-0.5.13",
// "-" where that is not SGLang's to say.
func (r *Rule) Versions() string {
	if r.Since == "" && r.Until == "" {
		return "-"
	}
	return r.Since + "-" + r.Until
}

// Printer is who prints the line.
func (r *Rule) Printer() string {
	if r.From == "" {
		return "sglang"
	}
	return r.From
}
