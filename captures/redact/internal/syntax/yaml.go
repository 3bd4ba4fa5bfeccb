package syntax

import (
	"bytes"

	"unwire/captures/redact/internal/match"
)

// yamlEntry reports whether the line of YAML whose name is at index at is an entry of a Secret of Kubernetes: of its "data"
// or "stringData". Found means that it is one. final and flush are as for Finder.At.
//
// Limits: the name of the object, and its kind, are searched for in 1 KiB before and after the line.
func yamlEntry(b []byte, at int, final, flush bool) match.State {
	indent := 0
	for at-indent > 0 && b[at-indent-1] == ' ' {
		indent++
	}
	if indent == 0 || at-indent == 0 || b[at-indent-1] != '\n' {
		return match.Nothing
	}

	// The entry belongs to the nearest line before it that is indented less.
	before := b[max(0, at-farBack) : at-indent-1]
	owner, before := lastLine(before)
	for len(before) > 0 && (isBlank(owner) || indentOf(owner) >= indent) {
		owner, before = lastLine(before)
	}
	depth := indentOf(owner)
	name, isFirst := bytes.CutPrefix(owner[depth:], []byte("- "))
	if isFirst {
		depth += len("- ")
	}
	switch string(bytes.TrimSpace(name)) {
	case "data:", "stringData:":
	default:
		return match.Nothing
	}
	if !isFirst {
		if kind, ok := kindBefore(before, depth); ok {
			return kind
		}
	}
	return kindAfter(b, at, depth, final, flush)
}

// lastLine returns the last line of a text, and the text before it.
func lastLine(b []byte) (line, before []byte) {
	i := bytes.LastIndexByte(b, '\n')
	return b[i+1:], b[:max(0, i)]
}

// kindBefore returns the kind of the object whose members are indented by depth, of which before are the lines before one. ok
// is false if they do not name it.
func kindBefore(before []byte, depth int) (kind match.State, ok bool) {
	for len(before) > 0 {
		var line []byte
		line, before = lastLine(before)
		indent := indentOf(line)
		isFirst := indent+2 == depth && bytes.HasPrefix(line[indent:], []byte("- "))
		switch {
		case indent == depth:
			kind, ok = kindOf(line)
		case isFirst:
			kind, ok = kindOf(line[indent+2:])
		}
		if ok || isFirst || endsObject(line, depth) {
			return kind, ok
		}
	}
	return match.Nothing, false
}

// kindAfter reports whether a line that is indented by depth and names the kind of a Secret follows index at in the same
// object.
func kindAfter(b []byte, at, depth int, final, flush bool) match.State {
	after := b[at:min(len(b), at+farAhead)]
	isAll := final || flush || len(after) == farAhead
	_, after, found := bytes.Cut(after, []byte("\n"))
	for found {
		var line []byte
		line, after, found = bytes.Cut(after, []byte("\n"))
		if !found && !isAll {
			break // the line may go on
		}
		if kind, ok := kindOf(line); ok && indentOf(line) == depth {
			return kind
		}
		if endsObject(line, depth) {
			return match.Nothing
		}
	}
	if !isAll {
		return match.Undecided
	}
	return match.Nothing
}

// endsObject reports whether a line is not in an object whose members are indented by depth.
func endsObject(line []byte, depth int) bool {
	return indentOf(line) < depth && !isBlank(line) || bytes.HasPrefix(line, []byte("---"))
}

// kindOf returns Found if a line names the kind Secret, and Nothing if it names another. ok is false if it names none.
func kindOf(line []byte) (kind match.State, ok bool) {
	word, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("kind:"))
	if ok && string(bytes.Trim(word, " \"'")) == "Secret" {
		return match.Found, true
	}
	return match.Nothing, ok
}

// indentOf returns the number of spaces before a line.
func indentOf(line []byte) int { return len(line) - len(bytes.TrimLeft(line, " ")) }

// isBlank reports whether a line has nothing but white space.
func isBlank(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 }
