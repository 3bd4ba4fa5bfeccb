package suite

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"unwire/decode/envelope"
	"unwire/decode/fieldpath"
	"unwire/replay"
	"unwire/replay/edit"
)

// An Experiment is a file that describes a replay with edits, and expectations about its result.
type Experiment struct {
	// About is the description of the experiment: the first comment of its file.
	About string
	// Capture is the path of the capture as written in the file; "" means the suite's default capture.
	Capture string
	// Exchange is the number of the exchange that the experiment replays.
	Exchange int64
	// After are the exchanges to send before: numbers, or "auto" for the exchanges that issued ids
	// which this one uses.
	After []string
	// Edits are the edits to the captured request.
	Edits []edit.Edit
	// Expect are the expectations, in the order of the file.
	Expect []expectation
}

// An expectation is a condition that the result of the replay must meet.
type expectation struct {
	// Line is the number of the line in the file, from 1.
	Line int
	// Text is the source line of the expectation without the word "expect".
	Text string

	// what is the kind of condition: verdict, code, origin, status, differs, same or value.
	what string

	// want is the expected value or, for differs and same, the path of a change.
	want string

	// path selects the value in the response, for value.
	path fieldpath.Path
	// frame is the number of the server's frame with the value; edit.FirstFrame means any frame.
	frame int

	// match is the regular expression that the value must match; nil if it must equal want.
	match *regexp.Regexp
}

// parse parses the file of an experiment: lines for the capture, the exchange, the edits, and the
// expectations.
//
//	# Another model is another answer.
//	capture turn.uwc
//	exchange 2
//	set run_request.model_details.model_id=other
//	expect verdict differs
//	expect code ok
//	expect differs @down 1.1.1
//	expect same @down 1.14
//	expect value 1.1.1~composer
//	expect value @0 1=hello
//
// Shape: "after" names exchanges that are sent before, as in "after 1". Edits have the syntax of
// ReadPatch. "differs" and "same" take the path of a change as a replay prints it, or a prefix of one;
// without a path they apply to the whole response. "value" takes a path in a message of the response,
// followed by = and a value or ~ and a regular expression. It applies to frame down/N after @N, and
// otherwise to any frame or to all frames joined.
// Limits: those of ReadPatch.
// Errors: they name the line.
func parse(r io.Reader) (*Experiment, error) {
	x := &Experiment{}
	var err error
	if x.Edits, err = edit.ReadPatch(r, x.directive); err != nil {
		return nil, err
	}
	switch {
	case x.Exchange == 0:
		return nil, fmt.Errorf("replay: the line that names the exchange is missing, such as: exchange 2")
	case len(x.Expect) == 0:
		return nil, fmt.Errorf("replay: the line with the expected result is missing, such as: expect verdict same")
	}
	return x, nil
}

// directive parses line number n; ok is false if it is not one for the capture, the exchange or an
// expectation.
func (x *Experiment) directive(n int, line string) (ok bool, err error) {
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch {
	case word == "capture":
		x.Capture = rest
	case word == "exchange":
		if x.Exchange, err = strconv.ParseInt(rest, 10, 64); err != nil || x.Exchange < 1 {
			err = fmt.Errorf("%q is not an exchange number", rest)
		}
	case word == "after":
		x.After = append(x.After, strings.Fields(rest)...)
	case word == "expect":
		var e expectation
		if e, err = parseExpectation(rest); err == nil {
			e.Line = n
			x.Expect = append(x.Expect, e)
		}
	case strings.HasPrefix(line, "#"):
		if x.About == "" {
			x.About = strings.TrimSpace(strings.TrimLeft(line, "#"))
		}
	default:
		return false, nil
	}
	return true, err
	// Words with a fixed set of values are checked while parsing.
}

// parseExpectation parses the text after "expect".
func parseExpectation(text string) (expectation, error) {
	e := expectation{Text: text, frame: edit.FirstFrame}
	what, rest, _ := strings.Cut(text, " ")
	e.what, e.want = what, strings.TrimSpace(rest)
	oneOf := func(words ...string) error {
		for _, w := range words {
			if w == e.want {
				return nil
			}
		}
		return fmt.Errorf("expect %s: the value %q must be one of %s", what, e.want, strings.Join(words, " "))
	}

	// The first word determines the syntax of the rest.
	switch what {
	case "verdict":
		return e, oneOf(string(replay.Same), string(replay.Differs), string(replay.Rejected), string(replay.Refused), string(replay.NotSent))
	case "origin":
		return e, oneOf(string(replay.FromServer), string(replay.FromLocal))
	case "code":
		if _, ok := envelope.CodeNumber(e.want); !ok {
			return e, fmt.Errorf("expect code: %q is not an error code", e.want)
		}
		return e, nil
	case "status":
		if _, err := strconv.ParseUint(e.want, 10, 16); err != nil {
			return e, fmt.Errorf("expect status: %q is not a number", e.want)
		}
		return e, nil
	case "differs", "same":
		return e, nil
	case "value":
		return e, e.parseValue()
	}
	return e, fmt.Errorf("expect %q: the word after expect must be verdict, code, origin, status, differs, same or value", what)
}

// parseValue parses want for an expectation of kind value: [@FRAME ]PATH=VALUE or [@FRAME ]PATH~REGEXP.
func (e *expectation) parseValue() error {
	frame, rest, err := edit.CutFrame(e.want)
	if err != nil {
		return err
	}
	e.frame = frame
	sign := strings.IndexAny(rest, "=~")
	if sign < 0 {
		return fmt.Errorf("expect value: %q needs = or ~ after the path", e.want)
	}
	path, after, err := edit.CutPath(rest[:sign])
	if err != nil || after != "" {
		return fmt.Errorf("expect value: %q is not the path of a field", rest[:sign])
	}
	e.path, e.want = path, rest[sign+1:]
	if rest[sign] == '~' {
		if e.match, err = regexp.Compile(e.want); err != nil {
			return fmt.Errorf("expect value: the regular expression is invalid: %w", err)
		}
	}
	return nil
}

// check returns descriptions of the expectations that the result r does not meet.
func (x *Experiment) check(r *replay.Result) (failed []string) {
	for i := range x.Expect {
		e := &x.Expect[i]
		if got, ok := e.met(r); !ok {
			failed = append(failed, fmt.Sprintf("line %d: 'expect %s' failed: %s", e.Line, e.Text, r.Clean(got)))
		}
	}
	return failed
}

// met reports whether the result r meets the expectation; got describes the actual result in a sentence.
func (e *expectation) met(r *replay.Result) (got string, ok bool) {
	switch e.what {
	case "verdict":
		return is("verdict", string(r.Comparison), r.Message), string(r.Comparison) == e.want
	case "origin":
		return is("origin", string(r.Origin), ""), string(r.Origin) == e.want
	case "code":
		return is("code", r.Code, r.Message), r.Code == e.want
	case "status":
		return is("status", strconv.Itoa(r.Status), ""), strconv.Itoa(r.Status) == e.want
	}
	// an answer that never came has no differences
	if r.Status == 0 {
		why := r.Message
		// The message of a refused request begins with the verdict.
		if r.Comparison != replay.Refused {
			why = strings.ReplaceAll(string(r.Comparison), "_", " ") + ": " + why
		}
		return "no answer came: " + why, false
	}
	switch e.what {
	case "differs", "same":
		paths := e.changed(r)
		if len(paths) == 0 {
			return "there is no difference from the recorded answer", e.what == "same"
		}
		return "the answer differs at " + strings.Join(paths, ", "), e.what == "differs"
	}

	// One matching value is enough.
	values := r.Values(e.frame, e.path)
	for _, v := range values {
		if e.match != nil && e.match.MatchString(v) || e.match == nil && v == e.want {
			return "", true
		}
	}
	if len(values) == 0 {
		return "the answer has no value at this path", false
	}
	const most = 5
	return fmt.Sprintf("the answer has other values at this path: %.200q", values[:min(len(values), most)]), false
}

// is returns a sentence about a property of a result: its value, and the message if there is one.
func is(name, value, message string) string {
	text := fmt.Sprintf("the %s is %s", name, value)
	if value == "" {
		text = "there is no " + name
	}
	if message != "" {
		text += ": " + message
	}
	return text
}

// changed returns the paths of the differences in r that are not ignored and match want.
func (e *expectation) changed(r *replay.Result) (paths []string) {
	for i := range r.Diff {
		c := &r.Diff[i]
		rest, ok := strings.CutPrefix(c.Path, e.want)
		if ok && c.Ignored == "" && (e.want == "" || rest == "" || strings.ContainsRune(".[ /", rune(rest[0]))) {
			paths = append(paths, c.Path)
		}
	}
	return paths
}
