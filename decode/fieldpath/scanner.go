package fieldpath

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const (
	// inNames are the characters that always end an unquoted name.
	inNames = ".[]!"

	// afterPath are the characters that also end an unquoted name if other text may follow the path.
	afterPath = ":=\" \t"
)

// A scanner parses the text of one path.
type scanner struct {
	// text is the path to be parsed, for example 3[0].name.
	text string

	// off is the offset in text of the next byte.
	off int

	// reserved are the characters that end an unquoted name.
	reserved string

	// check, if set, returns an error for steps that are not allowed.
	check func(Step) error
}

// path parses the steps of a path up to its end.
func (sc *scanner) path() (Path, error) {
	var p Path
	if sc.atEnd() {
		return p, nil
	}
	for {
		start := sc.off
		steps, err := sc.steps(p == nil)
		if err != nil {
			return p, err
		}

		// Check each step at once, so that the error's offset is that of the step.
		if sc.check != nil {
			for _, s := range steps {
				if err := sc.check(s); err != nil {
					// The error belongs to the beginning of the step.
					sc.off = start
					return p, err
				}
			}
		}
		if p = append(p, steps...); len(p) > maxSteps {
			return p, fmt.Errorf("the path has more than %d steps", maxSteps)
		}
		if sc.next() != '.' {
			return p, nil
		}
		if sc.off++; sc.atEnd() {
			return p, errors.New("a field is missing after the dot")
		}
	}
}

// steps parses a name with its indexes and layers. Each index after the first becomes a step of its own, because
// it selects an element of a list inside a list.
func (sc *scanner) steps(first bool) ([]Step, error) {
	quoted := sc.next() == '"'
	name, err := sc.name()
	if err != nil {
		return nil, err
	}
	steps := []Step{{Name: name, Index: All}}
	last := &steps[0]
	for sc.next() == '[' {
		if !first && name == "" && !quoted {
			return nil, errors.New("an index must follow its field without a dot, as in name[0]")
		}
		k, err := sc.index()
		if err != nil {
			return nil, err
		}
		// The step has an index already.
		if last.Index != All {
			steps = append(steps, Step{})
			last = &steps[len(steps)-1]
		}
		last.Index = k
	}

	// A step needs a name or an index. Only a quoted name may be empty.
	switch {
	case name != "":
	case quoted && last.Index != All:
		return nil, errors.New("an index needs a field before it, as in name[0]")
	case quoted || last.Index != All:
	case sc.next() == '.':
		return nil, errors.New("a field is missing before the dot")
	default:
		return nil, errors.New("a field is missing in the path")
	}
	last.Layers, err = sc.layers()
	return steps, err
}

// name parses an unquoted or quoted name.
func (sc *scanner) name() (string, error) {
	rest := sc.text[sc.off:]
	if sc.next() != '"' {
		return sc.bare(sc.reserved), nil
	}
	quoted, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return "", fmt.Errorf("the quoted name %q has no closing quote", rest)
	}
	name, err := strconv.Unquote(quoted)
	if err != nil {
		return "", fmt.Errorf("%s is not a valid quoted name", quoted)
	}
	sc.off += len(quoted)
	return name, nil
}

// bare returns the text up to the next reserved character.
func (sc *scanner) bare(reserved string) string {
	rest := sc.text[sc.off:]
	n := strings.IndexAny(rest, reserved)
	if n < 0 {
		n = len(rest)
	}
	sc.off += n
	return rest[:n]
}

// index parses an element index in brackets, such as [3].
func (sc *scanner) index() (int, error) {
	rest := sc.text[sc.off:]
	end := strings.IndexByte(rest, ']')
	if end < 0 {
		return 0, fmt.Errorf("the index %q has no closing bracket", rest)
	}
	k, err := strconv.ParseUint(rest[1:end], 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%q is not an index, such as [0]", rest[:end+1])
	}
	sc.off += end + 1
	return int(k), nil
}

// layers parses the formats that values of a step are unpacked from, as in the step 3!gzip!json, and returns them without
// the first exclamation mark: gzip!json.
func (sc *scanner) layers() (string, error) {
	start := sc.off
	for sc.next() == '!' {
		sc.off++
		if sc.next() == '"' || sc.bare(inNames+afterPath) == "" {
			return "", errors.New("the name of an encoding, such as base64 or json, is missing after the exclamation mark")
		}
	}
	return strings.TrimPrefix(sc.text[start:sc.off], "!"), nil
}

// next returns the next byte, or 0 at the end of the text.
func (sc *scanner) next() byte {
	if sc.off == len(sc.text) {
		return 0
	}
	return sc.text[sc.off]
}

// atEnd reports whether the path ends at the current offset.
func (sc *scanner) atEnd() bool {
	c := sc.next()
	return sc.off == len(sc.text) || strings.Contains(sc.reserved, ":") && (c == ':' || c == '=')
}

// unexpected returns an error about the next byte, or nil at the end of the text.
func (sc *scanner) unexpected() error {
	if sc.off == len(sc.text) {
		return nil
	}
	return fmt.Errorf("a path cannot contain %q here; put a name with special characters in double quotes", sc.text[sc.off])
}
