package config

import "github.com/pelletier/go-toml/v2/unstable"

// maxDepth bounds how deep keys and values may nest. Nothing of ours is near
// it, and the library that decodes needs the square of the depth.
const maxDepth = 32

// tooDeep finds the line of the first key or value that nests deeper than any
// launch.toml; 0 = none does. A document that does not parse is left to the
// decoder's complaint.
func tooDeep(document []byte) (line int) {
	lines := newLineIndex(document)
	var p unstable.Parser
	p.Reset(document)
	for p.NextExpression() {
		e := p.Expression()
		depth := 0
		for steps := e.Key(); steps.Next(); depth++ {
			if depth == 0 {
				line = lines.at(int(steps.Node().Raw.Offset))
			}
		}
		if e.Kind == unstable.KeyValue {
			depth += valueDepth(e.Value(), maxDepth)
		}
		if depth > maxDepth {
			return line
		}
	}
	return 0
}

// valueDepth counts the levels of a value, but not beyond what is left.
func valueDepth(value *unstable.Node, left int) int {
	if left < 0 || value.Kind != unstable.InlineTable && value.Kind != unstable.Array {
		return 0
	}
	deepest := 0
	for children := value.Children(); children.Next(); {
		child := children.Node()
		depth := 0
		if child.Kind == unstable.KeyValue {
			for steps := child.Key(); steps.Next(); {
				depth++
			}
			child = child.Value()
		}
		deepest = max(deepest, depth+valueDepth(child, left-depth-1))
	}
	return deepest + 1
}
