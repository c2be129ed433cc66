package phases

import (
	"bytes"
	"slices"
	"strconv"
)

// A bar is one state of a progress bar, as tqdm draws it:
//
//	Loading safetensors checkpoint shards:  33% Completed | 1/3 [00:00<00:00,  6.66it/s]
//	Capturing batches (bs=8 avail_mem=10.19 GB):  50%|█████     | 3/6 [00:32<00:30, 10.19s/it]
//	  0%|          | 0/13 [00:00<?, ?it/s]
//
// or a narrower form of it. Both numbers are always there.
type bar struct {
	desc        []byte // what it counts; empty where it says nothing
	done, total int64
}

// nextBar reads the first bar of text and returns what follows it; ok is false
// where there is none. Bars may be glued to each other without a separator.
func nextBar(text []byte) (b bar, rest []byte, ok bool) {
	for from := 0; ; {
		k := bytes.Index(text[from:], []byte(" ["))
		if k < 0 {
			return cutBar(text)
		}
		k += from
		from = k + 2
		slash := k
		for slash > 0 && isCountByte(text[slash-1]) {
			slash--
		}
		start := slash
		if start == k || start < 2 || text[start-1] != '/' {
			continue
		}
		slash = start - 1
		start = slash
		for start > 0 && isCountByte(text[start-1]) {
			start--
		}
		done, okDone := parseCount(text[start:slash])
		total, okTotal := parseCount(text[slash+1 : k])
		if !okDone || !okTotal || total == 0 || done > total {
			continue
		}
		percent := bytes.LastIndexByte(text[:start], '%')
		if percent < 0 {
			continue
		}
		return bar{desc: barDesc(text[:percent]), done: done, total: total}, barRest(text[k:]), true
	}
}

// cutBar reads a bar that lost its times: "... 11%| | 4/35" at the end of text.
func cutBar(text []byte) (b bar, rest []byte, ok bool) {
	pipe := bytes.LastIndexByte(text, '|')
	percent := bytes.LastIndexByte(text[:max(pipe, 0)], '%')
	if percent < 0 {
		return bar{}, nil, false
	}
	counts := bytes.TrimRight(text[pipe+1:], " .")
	before, after, ok := bytes.Cut(bytes.TrimSpace(counts), []byte("/"))
	if !ok {
		return bar{}, nil, false
	}
	done, okDone := parseCount(before)
	total, okTotal := parseCount(after)
	if !okDone || !okTotal || total == 0 || done > total {
		return bar{}, nil, false
	}
	return bar{desc: barDesc(text[:percent]), done: done, total: total}, nil, true
}

// barDesc is the text before ": 33%".
func barDesc(head []byte) []byte {
	end := len(head)
	for end > 0 && (isDigit(head[end-1]) || head[end-1] == ' ') {
		end--
	}
	return bytes.TrimSpace(bytes.TrimSuffix(head[:end], []byte(":")))
}

// barRest is what follows the bracket with the times.
func barRest(tail []byte) []byte {
	if end := bytes.IndexByte(tail, ']'); end >= 0 {
		return tail[end+1:]
	}
	return nil
}

func isCountByte(c byte) bool {
	return isDigit(c) || c == '.' || c == 'k' || c == 'M' || c == 'G' || c == 'T' || c == 'B'
}

// parseCount reads "163", "512M", "4.30G": tqdm's own scaling by 1000.
func parseCount(b []byte) (int64, bool) {
	b = bytes.TrimSuffix(b, []byte("B"))
	if len(b) == 0 || len(b) > 15 {
		return 0, false
	}
	scale := 1.0
	if i := bytes.IndexByte([]byte("kMGT"), b[len(b)-1]); i >= 0 {
		scale = [...]float64{1e3, 1e6, 1e9, 1e12}[i]
		b = b[:len(b)-1]
	}
	v, err := strconv.ParseFloat(string(b), 64)
	if err != nil || v < 0 || v*scale > 1e18 {
		return 0, false
	}
	return int64(v * scale), true
}

// barsLength is how much of a message its bars take, 0 where nothing stands behind
// them. A bar ends without a newline, and who prints next, a dying interpreter
// above all, does not know of it.
func barsLength(h *header) int {
	msg := bytes.TrimRight(h.msg, " ")
	if h.stamped || h.marks&markPercent == 0 || bytes.HasSuffix(msg, []byte("]")) {
		return 0
	}
	rest := msg
	for range maxBars {
		_, next, ok := nextBar(rest)
		if !ok {
			break
		}
		rest = next
	}
	if len(rest) == 0 || len(rest) == len(msg) {
		return 0
	}
	return len(msg) - len(bytes.TrimLeft(rest, " ")) // a bar is padded to the length of a longer one
}

// maxBars of one line are read.
const maxBars = 4096

// bars reads every bar of a line.
func (t *Tracker) bars(msg []byte) {
	for range maxBars {
		b, rest, ok := nextBar(msg)
		if !ok {
			return
		}
		t.bar(b)
		msg = rest
	}
}

// bar finds the rule that knows the description and counts. A bar without one
// belongs to the capture, the only phase that draws such bars: also where an excerpt
// shows no begin of it.
func (t *Tracker) bar(b bar) {
	n := t.line.node
	rank := n.ranks.leader()
	if len(b.desc) == 0 {
		if n.sglang && !n.begun && n.ranks.phase() == Starting {
			t.advance(rank, GraphCapture, nil)
		}
		if n.ranks.phase() == GraphCapture {
			t.count(nil, rank, b, "graphs", nil)
		}
		return
	}
	var found *match
	matches := t.memo.match(b.desc)
	for i := range matches {
		if matches[i].rule.Kind == RuleProgress {
			found = &matches[i]
			break
		}
	}
	if found == nil {
		return
	}
	r := found.rule
	n.seenRules.add(found.number)
	n.sglang = n.sglang || r.From == ""
	n.read(found)
	if r.Activity != "" && !slices.Contains(n.active, r.Activity) {
		t.activity(r, b.desc)
	}
	t.count(r, rank, b, r.Unit, r.group(b.desc, found.groups, "name"))
}

// countGroups counts a stamped line that tells done and total itself.
func (t *Tracker) countGroups(r *Rule, msg []byte, groups []int) {
	b := bar{desc: r.group(msg, groups, "name")}
	var ok bool
	if b.done, ok = parseCount(r.group(msg, groups, "done")); !ok {
		t.enterOf(r, t.line.rank)
		return
	}
	if b.total, ok = parseCount(r.group(msg, groups, "total")); !ok {
		b.total = b.done
	}
	t.count(r, t.line.rank, b, r.Unit, b.desc)
}

// enterOf moves a rank to the phase that a progress rule names. It is no sign of
// life: an interpreter that ends draws its bars once more.
func (t *Tracker) enterOf(r *Rule, rank *rankState) {
	if r == nil || r.Phase == nil {
		return
	}
	t.line.node.begun = true
	if *r.Phase < Warmup {
		t.advance(rank, *r.Phase, r)
	}
}

// count notes a counter and reports it where it grew. The same bar drawn again
// from the start is a new pass.
func (t *Tracker) count(r *Rule, rank *rankState, b bar, unit string, name []byte) {
	n := t.line.node
	t.enterOf(r, rank)
	id := ""
	if r != nil {
		id = r.ID
	}
	c := n.counters[counterKey{id, string(name)}]
	switch {
	case c == nil && len(n.counters) >= maxCounters:
		return
	case c == nil:
		c = &counter{done: -1, total: b.total}
		n.counters[counterKey{id, string(name)}] = c
	case b.total != c.total, b.done < c.done && c.done == c.total:
		*c = counter{done: -1, total: b.total, pass: c.pass + 1}
	}
	if b.done <= c.done {
		return
	}
	grew := b.done > 0
	c.done = b.done
	n.show(b, unit)
	if !grew {
		return
	}
	t.moved(n)
	n.outlived(rank)
	if r != nil && r.Phase != nil && *r.Phase == GraphCapture {
		n.ranks.barrier(rank, GraphCapture) // every graph holds collectives
	}
	o := Observation{Kind: KindProgress, Done: b.done, Total: b.total, Unit: unit, Rank: t.rankName(n, rank), RankPhase: rank.phase, Rule: id}
	t.emit(o)
}

// maxBarName bounds what is kept of a bar's description.
const maxBarName = 80

// show notes what the bar that moved last shows.
func (n *node) show(b bar, unit string) {
	if n.bar == nil {
		n.bar = new(barState)
	}
	n.bar.done, n.bar.total, n.bar.unit = b.done, b.total, unit
	n.bar.desc = append(n.bar.desc[:0], b.desc[:min(len(b.desc), maxBarName+4)]...)
}
