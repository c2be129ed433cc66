package tune

import (
	"fmt"
	"time"
)

// baselineTries is how often the baseline is started in the morning.
const baselineTries = 5

// morning makes something serve: the winner where that is wanted, else the next
// that won, else the baseline. It goes on after the deadline: late is better
// than never.
func (n *Night) morning(now time.Time) Action {
	id, why, ok := n.candidate(now)
	if !ok {
		return Note{Done{Code: n.failureCode(), Text: "nothing serves: the baseline itself does not start"}}
	}
	if len(n.settles) == 0 {
		return Settle{len(n.launches), now.Add(min(n.plan.Study.Gate.Wait, retryGate))}
	}
	round := n.tried(id) + 1
	return n.launch(Slot{Morning, id, round}, why, now)
}

// candidate is what is started next in the morning.
func (n *Night) candidate(now time.Time) (id, why string, ok bool) {
	if n.plan.Study.Promote == PromoteServe {
		e := n.expect(BaselineID)
		for place, f := range n.decided.Findings {
			need := n.expect(f.Trial).Start + e.Load
			if !f.Won || n.tried(f.Trial) > 0 || now.Add(need).After(n.lastCall()) {
				continue
			}
			if _, known := n.trials[f.Trial]; !known {
				continue
			}
			if place == 0 {
				return f.Trial, "the winner is to serve", true
			}
			return f.Trial, "the next that won", true
		}
	}
	return BaselineID, "the baseline serves", n.tried(BaselineID) < baselineTries
}

// tried counts the starts of a trial in the morning that came to an end. One
// that was interrupted with the tuner says nothing against it.
func (n *Night) tried(trial string) int {
	tried := 0
	for _, l := range n.of[trial] {
		if l.Slot.Stage == Morning && l.ended != nil {
			tried++
		}
	}
	return tried
}

// prove is what a launch of the morning that was measured deserves.
func (n *Night) prove(l *launch) Action {
	for _, p := range n.wanted(l) {
		m, ok := n.run(l, p)
		switch {
		case !ok:
			return Stop{Launch: l.Launch, Why: "it does not prove itself: " + n.reason(l, p.Load)}
		case n.breaks(m) != "" && len(n.plan.Study.Points()) == 1:
			return Stop{Launch: l.Launch, Why: "it does not prove itself: " + n.breaks(m)}
		}
	}
	return HandOver{l.Launch, l.Slot.Trial}
}

// Exit codes of a night in which nothing serves.
const (
	codeLater  = 10 // trying later may help
	codePerson = 13 // processes, memory or hardware need a person
)

func (n *Night) failureCode() int {
	if n.broke != nil {
		switch n.broke.Breaker {
		case "unkillable", "memory", "hardware":
			return codePerson
		}
	}
	return codeLater
}

// finished is the end of a night in which something serves.
func (n *Night) finished() Done {
	t := n.trials[n.serving.Trial]
	text := fmt.Sprintf("%s serves", t.Name)
	switch v := n.decided; {
	case v == nil || v.Winner == "":
		text += "; no significant winner"
	case v.Winner == n.serving.Trial:
		text += ", the winner"
	case n.plan.Study.Promote == PromoteAsk:
		text += fmt.Sprintf("; the winner, %s, waits for a person", n.trials[v.Winner].Name)
	default:
		text += fmt.Sprintf(", as the winner, %s, could not be made to", n.trials[v.Winner].Name)
	}
	return Done{Text: text}
}
