package edit

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Bounds of a patch.
const (
	maxPatch      = 16 << 20 // bytes
	maxPatchEdits = 10_000
)

// ReadPatch reads the edits of a committed experiment: a line each, as the
// flags have them, in the order in which they apply.
//
//	# comments and empty lines are skipped
//	set run_request.model_details.model_id=other
//	retype @2 1.3:string
//	set 1.2 <<END
//	a value of
//	several lines
//	END
//
// Shape: directive, which may be nil, is given each line that is not inside a
// value, without the white space around it, and reports whether it is one that
// is no edit.
// Limits: 16 MiB, 10,000 edits.
// Errors: name the line.
func ReadPatch(r io.Reader, directive func(line int, text string) (ok bool, err error)) ([]Edit, error) {
	lines := bufio.NewScanner(io.LimitReader(r, maxPatch+1))
	lines.Buffer(nil, maxPatch)
	var edits []Edit
	n := 0
	for lines.Scan() {
		n++
		if directive != nil {
			ok, err := directive(n, strings.TrimSpace(lines.Text()))
			if err != nil {
				return nil, fmt.Errorf("replay: line %d: %w", n, err)
			}
			if ok {
				continue
			}
		}
		line := strings.TrimRight(strings.TrimLeft(lines.Text(), " \t"), "\r")
		if line == "" || line[0] == '#' {
			continue
		}
		at := n
		op, text, _ := strings.Cut(strings.TrimPrefix(line, "--"), " ")
		if before, word, ok := strings.Cut(text, " <<"); ok && isWord(word) {
			value, used, ended := heredoc(lines, word)
			if n += used; !ended {
				return nil, fmt.Errorf("replay: line %d: no %s ends the value", at, word)
			}
			text = before + "=" + value
		}
		e, err := Parse(op, strings.TrimLeft(text, " \t"))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", at, err)
		}
		if edits = append(edits, e); len(edits) > maxPatchEdits {
			return nil, fmt.Errorf("replay: line %d: more than %d edits", at, maxPatchEdits)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("replay: line %d: %w", n+1, err)
	}
	return edits, nil
}

// heredoc reads lines up to one that is word alone.
func heredoc(lines *bufio.Scanner, word string) (value string, used int, ended bool) {
	var parts []string
	for lines.Scan() {
		used++
		line := strings.TrimRight(lines.Text(), "\r")
		if line == word {
			return strings.Join(parts, "\n"), used, true
		}
		parts = append(parts, line)
	}
	return "", used, false
}

func isWord(s string) bool {
	return s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}
