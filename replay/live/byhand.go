package live

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode/fieldpath"
	"unwire/replay/edit"
	"unwire/replay/live/values"
)

// An Answer is the user's instruction where an identifier comes from: the client's frames carry at one
// path the value that the live server sends at another.
type Answer struct {
	// Frame is the number of the client's frame; edit.FirstFrame means all client frames that have the
	// path.
	Frame int

	// From is the number of the captured server frame that issued the value; edit.FirstFrame means the
	// last server frame before the client's frame that has the path.
	From int

	// path leads to the value in the client's frame, fromPath to that in the server's frame.
	path, fromPath fieldpath.Path

	// text is the text from which the Answer was parsed.
	text string
}

// ParseAnswer parses the value of an --answer flag.
//
// Shape: [@FRAME ]PATH=@down/[FRAME/]PATH, as in @2 1.3=@down/4/2.1.
func ParseAnswer(text string) (a Answer, err error) {
	a = Answer{From: edit.FirstFrame, text: text}
	fail := func(err error) (Answer, error) {
		return a, fmt.Errorf("--answer %q: %w; write FIELD=@%s/FIELD, such as 2=@%[3]s/1.3, or, to select frames by number, @2 FIELD=@%[3]s/4/FIELD", text, err, captures.Down)
	}
	var rest string
	if a.Frame, rest, err = edit.CutFrame(text); err != nil {
		return fail(err)
	}
	if a.path, rest, err = fieldpath.Cut(rest); err != nil {
		return fail(err)
	}
	from, ok := strings.CutPrefix(rest, "=@"+captures.Down.String()+"/")
	if !ok || len(a.path) == 0 {
		return fail(errors.New("FIELD=@down/ is missing"))
	}

	// Without the number of a frame, the value comes from the last earlier frame down that has the path.
	if number, path, ok := strings.Cut(from, "/"); ok {
		n, err := strconv.ParseUint(number, 10, 31)
		if err != nil {
			return fail(fmt.Errorf("%q is not the number of a frame", number))
		}
		a.From, from = int(n), path
	}
	if a.fromPath, rest, err = fieldpath.Cut(from); err != nil {
		return fail(err)
	}
	if rest != "" || len(a.fromPath) == 0 {
		return fail(fmt.Errorf("%q is not the path of a field", from))
	}
	return a, nil
}

// String returns the text of the flag.
func (a Answer) String() string { return a.text }

// BindByHand adds a binding for each of the user's answers to turns, the turns of the client's frames.
// It replaces the binding that was found automatically at the same path.
//
// Errors: an answer that names a frame or path which the capture lacks.
func (l *Links) BindByHand(turns []Turn, answers []Answer) error {
	for _, a := range answers {
		bound, reason := false, error(nil)
		for i := range turns {
			h := &l.up[i]
			if a.Frame != edit.FirstFrame && a.Frame != h.frame.Seq {
				continue
			}
			at := leafByPath(h.leaves, a.path, l.types[captures.Up])
			if at == nil {
				reason = fmt.Errorf("the recorded client frame %d has no field %s", h.frame.Seq, a.path)
				continue
			}
			b, err := l.byHand(i, at, &a)
			if err != nil {
				reason = err
				continue
			}
			// The binding given by hand replaces the one that was found for the same path.
			list := slices.DeleteFunc(slices.Clone(turns[i].Live), func(o Binding) bool { return o.Path == b.Path })
			turns[i].Live, bound = append(list, b), true
		}
		if !bound && reason == nil {
			reason = fmt.Errorf("client frame %d does not exist", a.Frame)
		}
		// An answer for all frames skips those that do not have the place.
		if !bound || a.Frame != edit.FirstFrame && reason != nil {
			return fmt.Errorf("--answer %q: %w", a.text, reason)
		}
	}
	return nil
}

// byHand returns the binding for the value at of client frame i, according to the answer a.
func (l *Links) byHand(i int, at *values.Leaf, a *Answer) (Binding, error) {
	for j := l.before[i] - 1; j >= 0; j-- {
		d := &l.down[j]
		if !d.shape.IsFrame() || a.From != edit.FirstFrame && a.From != d.frame.Seq {
			continue
		}
		if from := leafByPath(d.leaves, a.fromPath, l.types[captures.Down]); from != nil {
			return Binding{
				Path: at.Path, From: l.from(d), FromPath: from.Path, ByHand: true,
				json: l.up[i].frame.Tree == nil, value: at.Value, token: partByHand(at, from), source: *l.target(j, from.Path),
			}, nil
		}
	}
	what := "no server frame"
	if a.From != edit.FirstFrame {
		what = fmt.Sprintf("no server frame %d", a.From)
	}
	return Binding{}, fmt.Errorf("before client frame %d, the capture has %s with a field %s", l.up[i].frame.Seq, what, a.fromPath)
}

// partByHand returns the server's captured value if it is a part of the client's value, as in job/ID; "" means that
// the whole value is replaced.
func partByHand(at, from *values.Leaf) string {
	whole, part := at.Text(), from.Text()
	if at.Number || at.Object || from.Object || part == "" || whole == part {
		return ""
	}
	if _, isWord := values.ReplaceDigits(whole, part, ""); isWord || !values.IsDigits(part) && strings.Contains(whole, part) {
		return part
	}
	return ""
}

// leafByPath returns the value in leaves that a path selects, or nil. The path may use field names if
// md defines them, and may omit an index that is 0.
func leafByPath(leaves []values.Leaf, path fieldpath.Path, md protoreflect.MessageDescriptor) *values.Leaf {
	numbers := slices.Clone(path)
	for i := range numbers {
		if md == nil {
			break
		}
		fd := edit.FieldOf(md, numbers[i].Name)
		if md = nil; fd != nil {
			numbers[i].Name, md = strconv.Itoa(int(fd.Number())), fd.Message()
		}
	}
	for _, p := range [...]fieldpath.Path{path, numbers} {
		if l := values.LeafAt(leaves, p.String()); l != nil {
			return l
		}
		for k := range leaves {
			if strings.ReplaceAll(leaves[k].Path, "[0]", "") == p.String() {
				return &leaves[k]
			}
		}
	}
	return nil
}
