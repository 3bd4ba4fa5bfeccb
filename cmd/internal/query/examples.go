package query

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/field"
	"unwire/schema"
)

const (
	// maxExamples bounds the different values of a field that are returned, and maxExampleText each of them in
	// bytes.
	maxExamples, maxExampleText = 20, 200

	// maxExampleFrames bounds the frames that are searched for examples.
	maxExampleFrames = 20_000

	// maxExampleDepth bounds how deep messages are searched.
	maxExampleDepth = 60
)

// FieldExamples are values that a field has in the messages of a capture.
type FieldExamples struct {
	// Messages is the number of messages of the type that declares the field.
	Messages int `json:"messages"`
	// With is how many of these messages have the field.
	With int `json:"with"`

	// Values is the number of values that the field has in these messages.
	Values int `json:"values"`

	// Examples are different values, the most frequent first.
	Examples []*FieldExample `json:"examples"`

	// Cut means that the capture was not searched completely, or that there are more different values.
	Cut bool `json:"cut"`
}

// A FieldExample is one value of a field.
type FieldExample struct {
	// Text is the value as JSON, truncated to 200 bytes; for a message, its number of fields.
	Text string `json:"text"`

	// Count is how often the field has this value.
	Count int `json:"count"`

	// Frame is the address of the first frame with the value.
	Frame string `json:"frame"`
	// Path is the path of the field in that frame.
	Path string `json:"path"`
}

// ExamplesOf searches a capture for values of the field number of a message type. defs are the
// definitions that declare the type.
//
// Limits: 20,000 frames; 20 values of up to 200 bytes. Errors: for a damaged capture, the damage together
// with what was found.
func (c *Capture) ExamplesOf(ctx context.Context, defs *schema.Schema, message protoreflect.FullName, number protoreflect.FieldNumber) (*FieldExamples, error) {
	s := &exampleSearch{message: message, number: number, found: &FieldExamples{}, byText: map[string]*FieldExample{}}
	frames := 0
	for rec, err := range c.Exchanges(ctx) {
		if err != nil {
			return s.result(), err
		}
		if frames >= maxExampleFrames {
			s.found.Cut = true
			break
		}

		// Most exchanges are of methods whose messages cannot contain the type: they are not decoded.
		call := decode.Classify(rec)
		var types [2]protoreflect.MessageDescriptor
		for dir := range types {
			if md := defs.FrameType(call, captures.Direction(dir)); md != nil && contains(md, message, map[protoreflect.FullName]bool{}) {
				types[dir] = md
			}
		}
		if types[0] == nil && types[1] == nil {
			continue
		}
		ex, err := decode.Decode(ctx, c.Store, rec.ID, decode.Options{NoInner: true, Split: c.Splitting})
		if ex == nil || err != nil && !errors.Is(err, captures.ErrDamaged) {
			return s.result(), err
		}
		for i := range ex.Frames {
			f := &ex.Frames[i]
			frames++
			if md := types[f.Dir&1]; md != nil && f.Tree != nil {
				s.frame = FrameAddress(c.Path, ex, f, false).String()
				s.walk(decode.View{Type: md}.Fields(f.Tree), md, "", 0)
			}
		}
	}
	return s.result(), nil
}

// contains reports whether md is the message type called name, or has a field that can contain it at any
// depth. seen has the types that were visited.
func contains(md protoreflect.MessageDescriptor, name protoreflect.FullName, seen map[protoreflect.FullName]bool) bool {
	if md.FullName() == name {
		return true
	}
	if seen[md.FullName()] {
		return false
	}
	seen[md.FullName()] = true
	for i := range md.Fields().Len() {
		if m := md.Fields().Get(i).Message(); m != nil && contains(m, name, seen) {
			return true
		}
	}
	return false
}

// An exampleSearch collects the values of one field.
type exampleSearch struct {
	// message is the full name of the message type, and number the number of the field.
	message protoreflect.FullName

	// number is the number of the field.
	number protoreflect.FieldNumber

	// frame is the address of the frame that is being searched.
	frame string

	// found is the result so far.
	found *FieldExamples

	// byText finds the examples in found by their text.
	byText map[string]*FieldExample
}

// walk searches the fields of a message of type md. path is the path of that message followed by a dot,
// or "".
func (s *exampleSearch) walk(fields []*field.Field, md protoreflect.MessageDescriptor, path string, depth int) {
	if depth > maxExampleDepth {
		return
	}
	counts, has := map[uint64]int{}, false
	for _, f := range fields {
		counts[f.N]++
	}

	// Paths have an index where a number occurs several times.
	next := map[uint64]int{}
	for _, f := range fields {
		at := path + strconv.FormatUint(f.N, 10)
		if counts[f.N] > 1 {
			at += "[" + strconv.Itoa(next[f.N]) + "]"
			next[f.N]++
		}
		if md.FullName() == s.message && f.N == uint64(s.number) {
			s.add(f, at)
			has = true
		}
		if fd := md.Fields().ByNumber(protoreflect.FieldNumber(min(f.N, 1<<30))); fd != nil && fd.Message() != nil {
			s.walk(f.Fields, fd.Message(), at+".", depth+1)
		}
	}
	if md.FullName() == s.message {
		s.found.Messages++
		if has {
			s.found.With++
		}
	}
}

// add adds one value of the field, which is at a path.
func (s *exampleSearch) add(f *field.Field, path string) {
	s.found.Values++
	text := "{" + strconv.Itoa(len(f.Fields)) + " fields}"
	switch {
	case f.Symbol != "":
		text = f.Symbol
	case len(f.Fields) == 0:
		// What has no JSON is shown by its kind.
		data, err := json.Marshal(f.Value)
		if text = f.Kind; err == nil {
			text = string(data)
		}
	}
	if len(text) > maxExampleText {
		text = strings.ToValidUTF8(text[:maxExampleText], "") + "…"
	}

	// Further values are counted in Values alone.
	e := s.byText[text]
	switch {
	case e != nil:
	case len(s.byText) >= maxExamples:
		s.found.Cut = true
		return
	default:
		e = &FieldExample{Text: text, Frame: s.frame, Path: path}
		s.byText[text] = e
		s.found.Examples = append(s.found.Examples, e)
	}
	e.Count++
}

// result returns the examples, the most frequent first.
func (s *exampleSearch) result() *FieldExamples {
	slices.SortStableFunc(s.found.Examples, func(a, b *FieldExample) int { return cmp.Compare(b.Count, a.Count) })
	return s.found
}
