package edit

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// The limits of a patch file: its size, and the number of edits.
const (
	maxPatch      = 16 << 20 // bytes
	maxPatchEdits = 10_000
)

// ReadPatch parses a patch, i.e. a file with edits: one on each line, in the syntax of the flags, in
// the order in which they apply.
//
//	# comments and empty lines are skipped
//	set run_request.model_details.model_id=other
//	retype @2 1.3:string
//	set 1.2 <<END
//	a value of
//	several lines
//	END
//
// Shape: directive, if not nil, is called with each line outside of such values, without surrounding
// white space, and reports whether the line was a directive of the caller and not an edit.
// Limits: 16 MiB, 10,000 edits.
// Errors: they name the line.
func ReadPatch(r io.Reader, directive func(line int, text string) (ok bool, err error)) ([]Edit, error) {
	lines := bufio.NewScanner(io.LimitReader(r, maxPatch+1))
	lines.Buffer(nil, maxPatch)
	var edits []Edit
	n := 0
	for lines.Scan() {
		n++

		// The caller's directives take precedence over edits.
		if directive != nil {
			ok, err := directive(n, strings.TrimSpace(lines.Text()))
			if err != nil {
				return nil, fmt.Errorf("replay: line %d: %w", n, err)
			}
			if ok {
				continue
			}
		}

		// What is left is an edit, possibly with a value on the following lines.
		line := strings.TrimRight(strings.TrimLeft(lines.Text(), " \t"), "\r")
		if line == "" || line[0] == '#' {
			continue
		}
		at := n
		op, text, _ := strings.Cut(strings.TrimPrefix(line, "--"), " ")

		// A value of several lines follows as a here-document, as in a shell.
		if before, word, ok := strings.Cut(text, " <<"); ok && isWord(word) {
			value, used, ended := heredoc(lines, word)
			if n += used; !ended {
				return nil, fmt.Errorf("replay: line %d: the end of the value, a line %s, is missing", at, word)
			}
			text = before + "=" + value
		}
		e, err := Parse(op, strings.TrimLeft(text, " \t"))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", at, err)
		}
		if edits = append(edits, e); len(edits) > maxPatchEdits {
			return nil, fmt.Errorf("replay: line %d: the file has more than %d edits", at, maxPatchEdits)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("replay: line %d: %w", n+1, err)
	}
	return edits, nil
}

// heredoc reads the lines of a value up to the line that consists only of word. used is the number of
// lines read; ended is false if there was no such line.
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

// isWord reports whether s can end a value of several lines: it consists of the letters A to Z.
func isWord(s string) bool {
	return s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}
