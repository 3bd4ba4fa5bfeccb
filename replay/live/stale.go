package live

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A StaleValue is the reason why a client frame was not sent: the frame contains a value that the
// server issued in the capture, and the live server has sent nothing to replace it.
type StaleValue struct {
	// Frame is the number of the client frame in the capture.
	Frame int `json:"frame"`

	// Path is the path of the outdated value in the frame.
	Path string `json:"path"`

	// Issued is the captured server frame that contained the value, such as "down/4".
	Issued string `json:"issued"`

	// IssuedPath is the path of the value in that frame.
	IssuedPath string `json:"issued_path"`

	// Reason explains in a sentence why the value is outdated.
	Reason string `json:"reason"`
}

// String describes the value and the reason on one line.
func (s *StaleValue) String() string {
	return fmt.Sprintf("client frame %d was not sent, because the value in its field %s is outdated: in the recording, the server issued the value in %s, field %s. Reason: %s", s.Frame, s.Path, frameWords(s.Issued), s.IssuedPath, s.Reason)
}

// ErrUncertain reports that a frame was not sent because the capture does not show which value of the live
// server it must contain.
var ErrUncertain = errors.New("a recorded value is outdated, and unwire does not know its new value")

// An uncertainError is ErrUncertain with the value.
type uncertainError struct{ value StaleValue }

// Error names the value and the reason.
func (e *uncertainError) Error() string { return ErrUncertain.Error() + ": " + e.value.String() }

// Is makes the error match ErrUncertain.
func (e *uncertainError) Is(target error) bool { return target == ErrUncertain }

// maxStale limits the number of values that are reported.
const maxStale = 20

// noteStale sets Stale after Run has given up with the error err.
func (c *Schedule) noteStale(err error) {
	var u *uncertainError
	if errors.As(err, &u) {
		c.Stale = append(c.Stale, u.value)
	}
	if !errors.Is(err, ErrUnasked) && !errors.Is(err, ErrSilent) {
		return
	}
	down := c.dialogue.messages()
	for _, w := range c.waiters {
		w.ready(down, true)
		ids := slices.ContainsFunc(w.frame.Live, func(b Binding) bool { return b.isID() })
		for i, s := range w.bindings {
			b := &w.frame.Live[i]
			if s.result() != nil || len(c.Stale) >= maxStale || ids && !b.isID() {
				continue
			}
			v := StaleValue{w.frame.Seq, b.Path, b.From, b.FromPath, c.whyMissing(s, b.From, down)}
			c.Stale = append(c.Stale, v)
			c.note("%s", v.String())
		}
	}
}

// isID reports whether the value may be an identifier, and not an argument of the question that the
// response repeats.
func (b *Binding) isID() bool { return b.token != "" || b.word != "" || isIDLike(b.value) }

// whyMissing explains to the user why the search s found no live frame in down for the captured frame
// from.
func (c *Schedule) whyMissing(s *search, from string, down []*parsedMessage) string {
	if s.question == nil {
		return fmt.Sprintf("the live server has sent only %d of the %d frames with this structure", s.count, s.t.nth)
	}
	asked := []string{}
	for _, h := range down {
		if h.shape.Matches(s.question.kind.shape) && !c.claimed[h] {
			asked = append(asked, fmt.Sprintf("%s, where %s", c.links.roles.received(h.frame.Seq), c.links.difference(s.question, h)))
		}
	}
	const most = 3
	if len(asked) == 0 {
		return "the live server has not asked this question"
	}
	return fmt.Sprintf("the live server asks a question that differs from %s: %s", from, strings.Join(asked[:min(most, len(asked))], "; "))
}

// difference describes how the live question h differs from the captured question q.
func (l *Links) difference(q *question, h *parsedMessage) string {
	args := l.argumentsOf(h, q.kind)
	// Identifiers are compared by their class, and shown as they are: the lines of both are in parallel.
	was, is := strings.Split(q.args.loose, "\n"), strings.Split(args.loose, "\n")
	wasShown, isShown := strings.Split(q.args.exact, "\n"), strings.Split(args.exact, "\n")
	at := func(lines []string, path string) int {
		return slices.IndexFunc(lines, func(o string) bool { return strings.HasPrefix(o, path+"=") })
	}
	var list []string
	for i, line := range is {
		path, _, ok := strings.Cut(line, "=")
		if !ok || slices.Contains(was, line) {
			continue
		}
		text := path + " is " + shownArgument(isShown[i][len(path)+1:])
		if k := at(wasShown, path); k >= 0 {
			text += " instead of " + shownArgument(wasShown[k][len(path)+1:])
		}
		list = append(list, text)
	}
	for i, line := range was {
		if path, _, ok := strings.Cut(line, "="); ok && at(is, path) < 0 {
			list = append(list, path+" is missing, which was "+shownArgument(wasShown[i][len(path)+1:]))
		}
	}
	if len(list) == 0 {
		return "the question is the same as an earlier one"
	}
	return cut(strings.Join(list, ", "), 400)
}

// shownArgument shortens a quoted value of arguments for display.
func shownArgument(quoted string) string {
	s, err := strconv.Unquote(quoted)
	switch {
	case err != nil || s == "":
		return quoted
	case s[0] == 'n':
		return s[1:]
	case s[0] == 'h':
		return "a different long value"
	case s[0] == 't':
		s = s[1:]
	}
	return strconv.Quote(cut(s, 120))
}
