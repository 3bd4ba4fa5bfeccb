package fieldpath

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const (
	// inNames are the characters that a bare name never has.
	inNames = ".[]!"

	// afterPath are those that it has not either where something may follow.
	afterPath = ":=\" \t"
)

// A scanner reads one path.
type scanner struct {
	text     string
	off      int
	reserved string           // what no bare name has
	check    func(Step) error // if set, refuses steps
}

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
		if sc.check != nil {
			for _, s := range steps {
				if err := sc.check(s); err != nil {
					sc.off = start
					return p, err
				}
			}
		}
		if p = append(p, steps...); len(p) > maxSteps {
			return p, fmt.Errorf("more than %d steps", maxSteps)
		}
		if sc.next() != '.' {
			return p, nil
		}
		if sc.off++; sc.atEnd() {
			return p, errors.New("a step is missing after the dot")
		}
	}
}

// steps reads one name with its indexes and layers. Indexes after the first
// become steps of their own: elements of lists in lists.
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
			return nil, errors.New("an index stands after its name, without a dot")
		}
		k, err := sc.index()
		if err != nil {
			return nil, err
		}
		if last.Index != All {
			steps = append(steps, Step{})
			last = &steps[len(steps)-1]
		}
		last.Index = k
	}
	switch {
	case name != "":
	case quoted && last.Index != All:
		return nil, errors.New("an index needs a name that is not empty")
	case quoted || last.Index != All:
	case sc.next() == '.':
		return nil, errors.New("a step is missing: an empty step before the dot")
	default:
		return nil, errors.New("a step is missing")
	}
	last.Layers, err = sc.layers()
	return steps, err
}

// name reads a bare or quoted name.
func (sc *scanner) name() (string, error) {
	rest := sc.text[sc.off:]
	if sc.next() != '"' {
		return sc.bare(sc.reserved), nil
	}
	quoted, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return "", fmt.Errorf("%q: a quoted name without its end", rest)
	}
	name, err := strconv.Unquote(quoted)
	if err != nil {
		return "", fmt.Errorf("%s is not a quoted name", quoted)
	}
	sc.off += len(quoted)
	return name, nil
}

// bare reads up to one of the reserved characters.
func (sc *scanner) bare(reserved string) string {
	rest := sc.text[sc.off:]
	n := strings.IndexAny(rest, reserved)
	if n < 0 {
		n = len(rest)
	}
	sc.off += n
	return rest[:n]
}

// index reads an index in its brackets.
func (sc *scanner) index() (int, error) {
	rest := sc.text[sc.off:]
	end := strings.IndexByte(rest, ']')
	if end < 0 {
		return 0, fmt.Errorf("%q: an index without its closing bracket", rest)
	}
	k, err := strconv.ParseUint(rest[1:end], 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%q is not an index in brackets", rest[:end+1])
	}
	sc.off += end + 1
	return int(k), nil
}

func (sc *scanner) layers() (string, error) {
	start := sc.off
	for sc.next() == '!' {
		sc.off++
		if sc.next() == '"' || sc.bare(inNames+afterPath) == "" {
			return "", errors.New("the name of a layer is missing after the exclamation mark")
		}
	}
	return strings.TrimPrefix(sc.text[start:sc.off], "!"), nil
}

// next returns the byte that comes next, or 0.
func (sc *scanner) next() byte {
	if sc.off == len(sc.text) {
		return 0
	}
	return sc.text[sc.off]
}

// atEnd reports whether the path ends here.
func (sc *scanner) atEnd() bool {
	c := sc.next()
	return sc.off == len(sc.text) || strings.Contains(sc.reserved, ":") && (c == ':' || c == '=')
}

// unexpected returns an error unless all was read.
func (sc *scanner) unexpected() error {
	if sc.off == len(sc.text) {
		return nil
	}
	return fmt.Errorf("%q in a path; put the name in double quotes", sc.text[sc.off])
}
