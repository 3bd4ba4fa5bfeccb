package golang

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/replay/probe"
)

// A verifier holds definitions against a Go server, which refuses text that
// is none, messages that are none, and lists of numbers that break off, and
// passes over everything else.
type verifier struct {
	server     *server
	definition *probe.Definition
	res        *probe.Result
	poison     []byte // of a whole request: text that is none; nil: none is known
}

func Verify(ctx context.Context, c *probe.Client, d *probe.Definition, res *probe.Result) error {
	v := &verifier{server: newServer(c), definition: d, res: res}
	for _, step := range []func(context.Context) error{v.texts, v.messages, v.lists, v.rest} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if v.poison == nil {
		v.res.Note("no text field is known that could end a request: messages and lists cannot be told from what is unknown")
	}
	v.res.Note("protobuf-go passes over bytes and single numbers of any wire type: of them it only tells what they are not")
	return nil
}

// message is the level as the probe asks it.
func (v *verifier) message(path []int32) *message {
	return &message{server: v.server, path: path, poison: v.poison, fields: map[int32]*probe.Field{}}
}

// badTextTest is a text that is none, and nothing else is refused for it in those words.
func badTextTest() fieldTest { return fieldTest{name: "text", value: []byte{0xFF}, text: true} }

// enforced reports whether text is looked at by the definitions' own rules.
func enforced(fd protoreflect.FieldDescriptor) bool {
	e, ok := fd.(interface{ EnforceUTF8() bool })
	return !ok || e.EnforceUTF8()
}

// texts asks for each text. A refusal proves the messages that lead to it, too,
// and gives what later requests end with.
func (v *verifier) texts(ctx context.Context) error {
	var of *probe.ExpectedMessage
	for _, c := range v.definition.Fields {
		if c.In != of { // a message that is text refuses what is nested in it, too
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
				c.Decide(probe.Undecided, "by its definition a server does not look at its text")
				continue
			}
		case c.Descriptor.IsMap() && c.Descriptor.MapKey().Kind() == protoreflect.StringKind:
			path, number = append(slices.Clone(path), number), 1
		default:
			continue
		}
		m := v.message(path)
		hit, a, err := m.ask(ctx, badTextTest(), []int32{number})
		if err != nil {
			return err
		}
		c.Cite(v.server.Requests, "to text that is none: %s", a.Quoted())
		if !hit {
			continue
		}
		if v.poison == nil && !m.lazy {
			v.poison = probe.Wrap(path, probe.AppendBadText(nil, number))
		}
		switch {
		case c.IsText:
			c.Decide(probe.Confirmed, "the server reads the number as text")
			c.Open = "whether it is repeated"
		default:
			c.Decide(probe.Confirmed, "the server reads it as a message with text at 1, as the map's key is")
			c.Open = "whether it is a map, and of what"
		}
		v.provedBy(c.In.Above, c.Path, a)
	}
	if v.poison == nil {
		return v.textBelow(ctx)
	}
	return nil
}

// provedBy confirms the messages that lead to text which was looked at.
func (v *verifier) provedBy(above *probe.Expectation, path string, a *probe.Answer) {
	for ; above != nil && !above.Decided; above = above.In.Above {
		above.Cite(v.server.Requests, "to text that is none at %s: %s", path, a.Quoted())
		above.Decide(probe.Confirmed, "the server reads it as a message: it looks at text in it")
		above.Open = "whether it is repeated"
	}
}

// maxBelow is how many texts below the messages asked about are tried.
const maxBelow = 8

// textBelow looks for text that could end requests in messages that are not
// asked about themselves.
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

// noMessages finds which of a level's messages are text.
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

// messages asks for those that no text has proven, those above first.
func (v *verifier) messages(ctx context.Context) error {
	if v.poison == nil {
		return nil
	}
	for _, c := range v.definition.Fields {
		if !c.Pending() || !c.IsMessage {
			continue
		}
		hit, a, err := v.message(c.In.Path).ask(ctx, fieldTests()[testMessage], []int32{c.Number})
		if err != nil {
			return err
		}
		c.Cite(v.server.Requests, "to tags that are none: %s", a.Quoted())
		if !hit {
			f, err := v.found(ctx, c)
			if err != nil {
				return err
			}
			contradict(c, f)
			continue
		}
		c.Decide(probe.Confirmed, "the server reads it as a message: it looks at tags in it")
		c.Open = "whether it is repeated"
		if c.Descriptor.IsMap() {
			c.Open = "whether it is a map, and of what"
		}
	}
	return nil
}

// The tests of goTests, by what they look for.
const (
	testText = iota
	testMessage
	testVarints
	testFixed
)

// found is what a server shows of a number, whatever the definitions say; nil: nothing.
func (v *verifier) found(ctx context.Context, c *probe.Expectation) (*probe.Field, error) {
	m := v.message(c.In.Path)
	m.numbers = probe.Numbers{{First: c.Number, Last: c.Number}}
	err := m.run(ctx)
	return m.fields[c.Number], err
}

// contradict concludes from what a server has at a number that is not what the
// definitions say.
func contradict(c *probe.Expectation, f *probe.Field) {
	if f == nil {
		kind := "list of numbers"
		switch {
		case c.IsMessage:
			kind = "message"
		case c.IsText:
			kind = "text"
		}
		c.Decide(probe.Contradicted, "the server reads no %s at the number: it is unknown, bytes or a single number", kind)
		return
	}
	c.Said = append(c.Said, f.Evidence...)
	what := string(f.Class)
	switch {
	case f.Label == "repeated":
		what = "a list of " + what + " numbers"
	case f.Kind == "string":
		what = "text"
	case f.Class == probe.Message:
		what = "a message"
	}
	c.Decide(probe.Contradicted, "the server reads it as %s", what)
}

// lists asks for lists of numbers.
func (v *verifier) lists(ctx context.Context) error {
	if v.poison == nil {
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
		c.Decide(probe.Confirmed, "the server reads it as a list of %s numbers", f.Class)
		c.Open = c.OpenType
	}
	return nil
}

// rest looks among what a Go server passes over for what it does not.
func (v *verifier) rest(ctx context.Context) error {
	for _, l := range v.definition.Messages {
		texts := false
		for _, c := range l.Fields {
			texts = texts || c.IsText && c.Verdict == probe.Confirmed
		}
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
				c.Decide(probe.Undecided, "the server refuses no text at the number, nor any other of the message: it has none, or does not look at it")
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

// hits contradicts those of a set that a test is refused for, and returns the others.
func (v *verifier) hits(ctx context.Context, test int, l *probe.ExpectedMessage, set []int32, by map[int32]*probe.Expectation) ([]int32, error) {
	t := fieldTests()[test]
	for len(set) > 0 {
		n, err := v.message(l.Path).findFirst(ctx, t, set)
		if err != nil || n == 0 {
			return set, err
		}
		by[n].Cite(v.server.Requests, "% x is refused as a %s", t.value, t.name)
		by[n].Decide(probe.Contradicted, "the server reads it as %s", [...]string{
			testText: "text", testMessage: "a message", testVarints: "a list of varints", testFixed: "a list of numbers of fixed size",
		}[test])
		set = slices.DeleteFunc(set, func(k int32) bool { return k == n })
	}
	return set, nil
}

// others asks whether any of the bytes and single numbers of a message is
// something else: in a request for each that it may be, and more only if so.
func (v *verifier) others(ctx context.Context, l *probe.ExpectedMessage, set []int32, by map[int32]*probe.Expectation) error {
	said, from := 0, v.server.Requests+1
	for i, test := range fieldTests() {
		if test.text || v.poison != nil {
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
			c.Decide(probe.Undecided, "protobuf-go passes over bytes and single numbers")
			continue
		}
		c.Said = append(c.Said, fmt.Sprintf("requests %d to %d: no refusal for text, a message or a list", from, v.server.Requests))
		c.Decide(probe.Undecided, "protobuf-go passes over bytes and single numbers: the server has no text, message or list there")
	}
	return nil
}
