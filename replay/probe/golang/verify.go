package golang

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/replay/probe"
)

// A verifier checks a definition against a Go server's parser, which rejects invalid UTF-8 in strings,
// malformed messages and truncated packed lists, and skips everything else.
type verifier struct {
	// server is the probed server.
	server *server

	// definition is the definition that is verified.
	definition *probe.Definition

	// res receives notes.
	res *probe.Result
	// poison is a complete request that the parser rejects because of invalid UTF-8 in a string; nil if
	// no string field is known. It is appended to tests.
	poison []byte
}

// Verify checks a definition against the answers of a Go server's parser.
func Verify(ctx context.Context, c *probe.Client, d *probe.Definition, res *probe.Result) error {
	v := &verifier{server: newServer(c), definition: d, res: res}
	for _, step := range []func(context.Context) error{v.texts, v.messages, v.lists, v.rest} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	v.server.noteEnd(v.res, v.poison)
	v.res.Note("protobuf-go reports no parse errors for bytes fields and for numbers that are not repeated; for such fields, unwire can only exclude other types")
	return nil
}

// message returns the state for probing the message at a path.
func (v *verifier) message(path []int32) *message {
	return &message{server: v.server, path: path, poison: v.poison, fields: map[int32]*probe.Field{}}
}

// badTextTest returns the test with a value that only a string field rejects with the error for invalid
// UTF-8.
func badTextTest() fieldTest { return fieldTest{name: "text", value: []byte{0xFF}, text: true} }

// enforced reports whether the server validates the field's UTF-8 according to the definition.
func enforced(fd protoreflect.FieldDescriptor) bool {
	e, ok := fd.(interface{ EnforceUTF8() bool })
	return !ok || e.EnforceUTF8()
}

// texts tests each declared string field with invalid UTF-8. If the server rejects it, the field is a
// string, the fields that lead to it are messages, and later requests can end with it (poison).
func (v *verifier) texts(ctx context.Context) error {
	var of *probe.ExpectedMessage
	for _, c := range v.definition.Fields {
		// a string that is defined as a message would refuse what is nested in it
		if c.In != of {
			if of = c.In; c.Reachable() {
				if err := v.noMessages(ctx, of); err != nil {
					return err
				}
			}
		}
		path, number := c.In.Path, c.Number
		switch {
		case !c.Pending():
			continue
		case c.IsText:
			if !enforced(c.Descriptor) {
				c.Decide(probe.Undecided, "the definition turns off the UTF-8 check of this field, so the server cannot reveal it")
				continue
			}
		case c.Descriptor.IsMap() && c.Descriptor.MapKey().Kind() == protoreflect.StringKind:
			path, number = append(slices.Clone(path), number), 1
		default:
			continue
		}

		// Bad UTF-8 in a string field, or in the string key of a map.
		m := v.message(path)
		hit, a, err := m.ask(ctx, badTextTest(), []int32{number})
		if err != nil {
			return err
		}
		c.Cite(v.server.Requests, "answer to invalid UTF-8 in the field: %s", a.Quoted())
		if !hit {
			continue
		}
		if v.poison == nil && !m.lazy {
			v.poison = probe.Wrap(path, probe.AppendBadText(nil, number))
		}
		switch {
		case c.IsText:
			c.Decide(probe.Confirmed, "the server parses the field as string")
			c.Open = "whether the field is repeated"
		default:
			c.Decide(probe.Confirmed, "the server parses the field as a message with a string in field 1, like an entry of a map with string keys")
			c.Open = "whether it is a map, and the types of its keys and values"
		}
		v.provedBy(c.In.Above, c.Path, a)
	}
	if v.poison == nil {
		return v.endWithoutTexts(ctx)
	}
	return nil
}

// endWithoutTexts determines another way to make the server reject each request, if no string of the
// definition is validated.
func (v *verifier) endWithoutTexts(ctx context.Context) error {
	if err := v.textBelow(ctx); err != nil || v.poison != nil {
		return err
	}
	if ok, err := v.server.findEnd(ctx); !ok {
		return err
	}
	for _, c := range v.definition.Fields {
		if c.Pending() && v.message(c.In.Path).isUntested(c.Number) {
			c.Decide(probe.Undecided, "not tested: unwire omits this required field, so that the server rejects each request")
		}
	}
	return nil
}

// canEnd reports whether there is a way to end requests whose message the parser accepts without
// running the handler.
func (v *verifier) canEnd() bool { return v.poison != nil || v.server.end != nil }

// provedBy confirms the message field above and those around it, because the server validated a string
// at path inside them. a is the response.
func (v *verifier) provedBy(above *probe.Expectation, path string, a *probe.Answer) {
	for ; above != nil && !above.Decided; above = above.In.Above {
		above.Cite(v.server.Requests, "answer to invalid UTF-8 in field %s: %s", path, a.Quoted())
		above.Decide(probe.Confirmed, "the server parses the field as a message: it rejects invalid UTF-8 in a string inside")
		above.Open = "whether the field is repeated"
	}
}

// maxBelow limits how many strings below the verified messages are tested.
const maxBelow = 8

// textBelow looks for a string field in messages that are not verified themselves. Invalid UTF-8 in
// that field then ends later requests.
func (v *verifier) textBelow(ctx context.Context) error {
	tried := 0
	for _, c := range v.definition.Fields {
		if !c.Pending() || !c.IsMessage || c.Below != nil || c.Descriptor.IsMap() {
			continue
		}
		fields := c.Descriptor.Message().Fields()
		for i := 0; i < fields.Len() && tried < maxBelow && v.poison == nil; i++ {
			fd := fields.Get(i)
			if fd.Kind() != protoreflect.StringKind || !enforced(fd) {
				continue
			}
			tried++
			path, number := append(slices.Clone(c.In.Path), c.Number), int32(fd.Number())
			m := v.message(path)
			hit, a, err := m.ask(ctx, badTextTest(), []int32{number})
			if err != nil {
				return err
			}
			if hit && !m.lazy {
				v.poison = probe.Wrap(path, probe.AppendBadText(nil, number))
				v.provedBy(c, probe.PathText(append(path, number)), a)
			}
		}
	}
	return nil
}

// noMessages determines which fields of l that are declared as messages are strings on the server.
func (v *verifier) noMessages(ctx context.Context, l *probe.ExpectedMessage) error {
	var set []int32
	by := map[int32]*probe.Expectation{}
	for _, c := range l.Fields {
		if c.Pending() && c.IsMessage {
			set, by[c.Number] = append(set, c.Number), c
		}
	}
	_, err := v.hits(ctx, testText, l, set, by)
	return err
}

// messages tests the fields that are declared as messages and not confirmed by a string in them, outer
// ones first.
func (v *verifier) messages(ctx context.Context) error {
	if !v.canEnd() {
		return nil
	}

	// A string test has proven some messages already; the others are tested one by one.
	for _, c := range v.definition.Fields {
		if !c.Pending() || !c.IsMessage {
			continue
		}
		hit, a, err := v.message(c.In.Path).ask(ctx, fieldTests()[testMessage], []int32{c.Number})
		if err != nil {
			return err
		}
		c.Cite(v.server.Requests, "answer to illegal tags: %s", a.Quoted())
		if !hit {
			f, err := v.found(ctx, c)
			if err != nil {
				return err
			}
			contradict(c, f)
			continue
		}
		c.Decide(probe.Confirmed, "the server parses the field as a message: it rejects illegal tags inside")
		c.Open = "whether the field is repeated"
		if c.Descriptor.IsMap() {
			c.Open = "whether it is a map, and the types of its keys and values"
		}
	}
	return nil
}

// The indexes of fieldTests.
const (
	testText = iota
	testMessage
	testVarints
	testFixed
)

// found probes the number of a field regardless of the definition; the result is nil if the server has
// no such field.
func (v *verifier) found(ctx context.Context, c *probe.Expectation) (*probe.Field, error) {
	m := v.message(c.In.Path)
	m.numbers = probe.Numbers{{First: c.Number, Last: c.Number}}
	err := m.run(ctx)
	return m.fields[c.Number], err
}

// contradict decides an expectation from f, the field that the server was found to have instead; nil if
// it has none.
func contradict(c *probe.Expectation, f *probe.Field) {
	if f == nil {
		kind := "repeated number"
		switch {
		case c.IsMessage:
			kind = "message"
		case c.IsText:
			kind = "text"
		}
		c.Decide(probe.Contradicted, "the server does not parse the field as a %s: the field is unknown, bytes, or a number that is not repeated", kind)
		return
	}
	c.Said = append(c.Said, f.Evidence...)
	what := string(f.Class)
	switch {
	case f.Label == "repeated":
		what = "repeated numbers (" + what + ")"
	case f.Kind == "string":
		what = "string"
	case f.Class == probe.Message:
		what = "a message"
	}
	c.Decide(probe.Contradicted, "the server parses the field as %s", what)
}

// lists tests which numeric fields are repeated.
func (v *verifier) lists(ctx context.Context) error {
	if !v.canEnd() {
		return nil
	}
	for _, c := range v.definition.Fields {
		if !c.Pending() || !c.IsNumber || !c.IsList {
			continue
		}
		f, err := v.found(ctx, c)
		if err != nil {
			return err
		}
		if f == nil || f.Class != c.Class || f.Label != "repeated" {
			contradict(c, f)
			continue
		}
		c.Said = append(c.Said, f.Evidence...)
		c.Decide(probe.Confirmed, "the server parses the field as repeated numbers (%s)", f.Class)
		c.Open = c.OpenType
	}
	return nil
}

// rest tests that the server skips the test values of fields for which a Go parser should skip them,
// such as bytes.
func (v *verifier) rest(ctx context.Context) error {
	for _, l := range v.definition.Messages {
		texts := false
		for _, c := range l.Fields {
			texts = texts || c.IsText && c.Verdict == probe.Confirmed
		}
		// The fields that are left should be skipped by the parser; they are tested together.
		var set []int32
		by := map[int32]*probe.Expectation{}
		for _, c := range l.Fields {
			switch {
			case !c.Pending():
			case c.IsText && texts:
				f, err := v.found(ctx, c)
				if err != nil {
					return err
				}
				contradict(c, f)
			case c.IsText:
				c.Decide(probe.Undecided, "the server rejects invalid UTF-8 neither in this field nor in any other field of the message: there is no string, or the server does not check it")
			case !c.IsMessage && !(c.IsNumber && c.IsList):
				set, by[c.Number] = append(set, c.Number), c
			}
		}
		if err := v.others(ctx, l, set, by); err != nil {
			return err
		}
	}
	return nil
}

// hits marks the fields of a set as contradicted for which the server rejects a test, and returns the
// other ones. test is an index of fieldTests; by are the expectations by field number.
func (v *verifier) hits(ctx context.Context, test int, l *probe.ExpectedMessage, set []int32, by map[int32]*probe.Expectation) ([]int32, error) {
	t := fieldTests()[test]
	for len(set) > 0 {
		n, err := v.message(l.Path).findFirst(ctx, t, set)
		if err != nil || n == 0 {
			return set, err
		}
		by[n].Cite(v.server.Requests, "the server rejects the bytes % x as %s", t.value, t.name)
		by[n].Decide(probe.Contradicted, "the server parses the field as %s", [...]string{
			testText: "string", testMessage: "a message", testVarints: "repeated varints", testFixed: "repeated fixed-size numbers",
		}[test])
		set = slices.DeleteFunc(set, func(k int32) bool { return k == n })
	}
	return set, nil
}

// others tests whether any of the fields in set, which are declared as bytes or single numbers, is of
// another kind. It takes one request for each kind, and more only if one is rejected.
func (v *verifier) others(ctx context.Context, l *probe.ExpectedMessage, set []int32, by map[int32]*probe.Expectation) error {
	said, from := 0, v.server.Requests+1
	for i, test := range fieldTests() {
		if test.text || v.canEnd() {
			var err error
			if set, err = v.hits(ctx, i, l, set, by); err != nil {
				return err
			}
			said++
		}
	}
	for _, n := range set {
		c := by[n]
		if said < len(fieldTests()) {
			c.Decide(probe.Undecided, "protobuf-go reports no parse errors for bytes fields and for numbers that are not repeated")
			continue
		}
		c.Said = append(c.Said, fmt.Sprintf("requests %d to %d: the server accepted a value that would be an error in a string, a message or repeated numbers", from, v.server.Requests))
		c.Decide(probe.Undecided, "the field is not a string, a message or a repeated number; protobuf-go reports no parse errors for bytes fields and for numbers that are not repeated")
	}
	return nil
}
