package probe

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// An esVerifier holds definitions against a protobuf-es server: one payload is
// laid out so that its parser reads all of it if the definitions are right, up
// to the end that no parser takes. Where they are not, it stumbles over a canary
// that names the field and what was expected of it.
//
// Shape: each part leaves the parser where it was, unless it stumbles. A field
// that it stumbled over is left out of the next payload.
type esVerifier struct{ *verifier }

// A part is what of a claim a canary is about.
type part uint8

const (
	partClass   part = iota // how the value is consumed
	partLabel               // one number, or a list
	partInside              // in the message: the guard that would show a number
	partOutside             // around it
)

type mark struct {
	claim *claim
	part  part
}

// A layout is a payload while it is laid out.
type layout struct {
	marks []mark
	only  map[*claim]bool // nil: all
}

func (l *layout) mark(c *claim, p part) int {
	l.marks = append(l.marks, mark{c, p})
	return len(l.marks) - 1
}

func (l *layout) has(c *claim) bool { return c.open() && (l.only == nil || l.only[c]) }

// payload lays out what is still asked, or of it only some.
func (v *esVerifier) payload(only map[*claim]bool) ([]byte, []mark) {
	l := &layout{only: only}
	b := l.level(v.root)
	return wrap(v.o.Path, appendEnd(b, len(l.marks))), l.marks
}

// level lays out a message: first how each value is consumed, then what relies on it.
func (l *layout) level(of *level) []byte {
	var b []byte
	for _, c := range of.claims {
		if l.has(c) {
			b = appendReading(b, reading{c.Number, c.as}, l.mark(c, partClass))
		}
	}
	for _, c := range of.claims {
		switch {
		case !c.open():
		case c.isMessage():
			b = l.message(b, c)
		case !l.has(c) || !c.isNumber():
		case c.as == asVarint && !c.isList():
			readings, weight := l.outerReadings(c)
			c.guarded = weight >= leastWeight
			b = appendSingleVarint(b, c.Number, l.mark(c, partLabel), readings)
		default:
			b = appendLabelTest(b, c, l.mark(c, partLabel))
		}
	}
	return b
}

// message lays out what is in a message, with something that stumbles if the
// field is a number, and its fields are read as those around it.
func (l *layout) message(b []byte, c *claim) []byte {
	var inner []byte
	if c.below != nil {
		inner = l.level(c.below)
	}
	if l.has(c) {
		b, inner = l.guard(b, inner, c)
	}
	if !l.has(c) {
		if len(inner) == 0 {
			return b
		}
		b = protowire.AppendTag(b, protowire.Number(c.Number), protowire.BytesType)
		return protowire.AppendBytes(b, inner)
	}
	return appendUnlist(b, c.Number, l.mark(c, partLabel), inner)
}

// appendUnlist gives a number a value of tags that a message, or a varint, reads
// as such. A list of varints reads on over the value's end, and stumbles.
func appendUnlist(b []byte, n int32, index int, tags []byte) []byte {
	tags = append(fill(append(tags, skip8...), 7), 0x80)
	b = protowire.AppendTag(b, protowire.Number(n), protowire.BytesType)
	b = protowire.AppendBytes(b, tags)
	b = append(b, skip4...)
	return fill(appendCanary(b, index, slotPacked), 1)
}

// guard adds the first of these that was not tried: a field inside is read in
// another way than that of its number around; a number of the fields around is
// unknown inside; a number inside is unknown around.
func (l *layout) guard(b, inner []byte, c *claim) (outer, within []byte) {
	around := map[int32]*claim{}
	for _, k := range c.of.claims {
		if l.has(k) {
			around[k.Number] = k
		}
	}
	inside := c.fd.Message().Fields()
	c.guarded = false
	skip := c.guards
	next := func() bool { skip--; return skip < 0 }
	if c.below != nil && !c.fd.IsMap() {
		for _, k := range c.below.claims {
			if other := around[k.Number]; other != nil && l.has(k) && other.as != k.as && next() {
				c.guarded = true // their own parts show it
				return b, inner
			}
		}
	}
	for _, k := range c.of.claims {
		if around[k.Number] != nil && k.as != asFixed32 && inside.ByNumber(protowire.Number(k.Number)) == nil && next() {
			c.guarded = true
			return b, appendReading(inner, reading{k.Number, absent}, l.mark(c, partInside))
		}
	}
	if c.below != nil {
		for _, k := range c.below.claims {
			if l.has(k) && k.as != asFixed32 && c.fd.ContainingMessage().Fields().ByNumber(protowire.Number(k.Number)) == nil && next() {
				c.guarded = true
				return appendReading(b, reading{k.Number, absent}, l.mark(c, partOutside)), inner
			}
		}
	}
	return b, inner
}

// leastWeight is how much has to be alike in two messages for us to believe that
// they are one.
const leastWeight = 4

// outerReadings are those of the fields beside a number, and how unlikely it is
// that another message has the same: a varint counts for one, others for two.
func (l *layout) outerReadings(c *claim) (out []reading, weight int) {
	for _, numbers := range []bool{false, true} {
		for _, k := range c.of.claims {
			if k == c || !l.has(k) || k.fd.IsMap() || (k.as == asVarint) != numbers || len(out) >= nearReadings {
				continue
			}
			if out = append(out, reading{k.Number, k.as}); numbers {
				weight++
			} else {
				weight += 2
			}
		}
	}
	return append(out, reading{c.Number, c.as}), weight
}

// appendSingleVarint is silent for one varint, whose following tags are those of
// the fields around it. A list reads on over the end of the value; a message
// stumbles unless it has the same fields.
func appendSingleVarint(b []byte, n int32, index int, readings []reading) []byte {
	var p []byte
	for _, r := range readings {
		p = appendReading(p, r, index)
	}
	return appendUnlist(b, n, index, p)
}

// appendLabelTest is silent for a list where that is expected, or for a single
// number of 4 or 8 bytes, and stumbles for the other.
func appendLabelTest(b []byte, c *claim, index int) []byte {
	b = protowire.AppendTag(b, protowire.Number(c.Number), protowire.BytesType)
	switch list := c.isList(); {
	case list && c.as == asVarint: // one varint of three bytes, and one of one
		b = append(b, 4)
		return fill(appendCanary(b, index, slotPacked), 1)
	case list && c.as == asFixed32: // two of four bytes
		b = fill(append(b, 8), 3)
		return fill(appendCanary(b, index, slotPacked), 2)
	case list: // two of eight
		b = fill(append(b, 16), 7)
		return fill(appendCanary(b, index, slotPacked), 6)
	case c.as == asFixed32: // the length is its first byte; a list ends two bytes into what is skipped
		b = fill(append(b, 8), 3)
		b = fill(append(b, skip8...), 2)
		return fill(appendCanary(b, index, slotPacked), 3)
	default:
		b = fill(append(b, 24), 7)
		b = fill(append(b, skip8...), 8)
		b = fill(append(b, skip8...), 3)
		return fill(appendCanary(b, index, slotPacked), 2)
	}
}

func (v *esVerifier) run(ctx context.Context) error {
	if err := requestType(ctx, v.c, v.res); err != nil {
		return err
	}
	for {
		b, marks := v.payload(nil)
		done, err := v.ask(ctx, b, marks)
		if err != nil {
			return err
		}
		if done {
			break
		}
	}
	if err := v.conclude(ctx); err != nil {
		return err
	}
	if v.o.Refine && v.res.Runtime == ES2 {
		return v.texts(ctx)
	}
	return nil
}

// ask sends a payload; done reports that the parser came to its end.
func (v *esVerifier) ask(ctx context.Context, b []byte, marks []mark) (done bool, err error) {
	a, err := v.c.ask(ctx, fmt.Sprintf("the definition of %s", v.o.Request.FullName()), b)
	if err != nil {
		return false, err
	}
	index, s, _, ok := readCanary(a.message)
	switch {
	case ok && index == len(marks) && s == slotEnd:
		for _, m := range marks {
			if m.claim.state == asking {
				m.claim.state = passed
				m.claim.say(v.c.requests, "the parser came to the end that no parser takes, over what is read as %s there: %s", v.expectation(m.claim), quote(a.message))
			}
		}
		return true, nil
	case ok && index < len(marks):
		return false, v.stumbled(ctx, marks[index], s, a)
	case a.parser:
		return false, v.isolate(ctx, marks, a)
	}
	return false, &stopError{fmt.Sprintf("the answer to request %d tells nothing of the parser: %s", v.c.requests, a.brief())}
}

func (v *esVerifier) expectation(c *claim) string {
	if c.Label == "repeated" {
		return "repeated " + c.Type
	}
	return c.Type
}

// stumbled enters what a canary names.
func (v *esVerifier) stumbled(ctx context.Context, m mark, s slot, a *answer) error {
	c := m.claim
	if m.part == partInside || m.part == partOutside {
		c.guards++ // there is a field that the definitions do not have, or c is a number
		return nil
	}
	if above := c.of.above; above != nil && !above.proven {
		if err := v.prove(ctx, above); err != nil || !c.reachable() {
			return err
		}
	}
	c.say(v.c.requests, "the parser stumbled over it: %s", quote(a.message))
	switch {
	case m.part == partLabel && c.as != asVarint && c.isList():
		c.decide(Contradicted, "the server reads one number of its size, not a list")
		return nil
	case m.part == partLabel && (c.as != asVarint || s == slotPacked && (c.isMessage() || !c.isList())):
		c.decide(Contradicted, "the server reads a list of numbers, not one")
		return nil
	}
	c.state, c.label = doubted, m.part == partLabel
	return nil
}

// settle finds out what a server has in place of what it stumbled over.
func (v *esVerifier) settle(ctx context.Context, c *claim) error {
	f, err := v.find(ctx, c)
	if err != nil {
		return err
	}
	if c.label && f != nil && f.Class == "" && c.isList() {
		c.decide(Contradicted, "the server reads one varint, or a message, not a list")
		return nil
	}
	c.judge(f)
	return nil
}

// prove finds out whether a field whose contents are not as expected is a
// message at all.
func (v *esVerifier) prove(ctx context.Context, c *claim) error {
	if above := c.of.above; above != nil && !above.proven {
		if err := v.prove(ctx, above); err != nil || !c.reachable() {
			return err
		}
	}
	f, err := v.find(ctx, c)
	switch {
	case err != nil:
		return err
	case f != nil && f.Class == Message:
		c.proven = true
	case f != nil && f.Class == "" && c.hint.Len:
		c.proven = true
	case f != nil && f.Class == "":
		c.decide(Undecided, "a number, or a message whose fields are read like those around it")
	default:
		c.judge(f)
	}
	return nil
}

// judge concludes from what a server was found to have, where the parser
// stumbled over what it was expected to have.
func (c *claim) judge(f *Field) {
	if f != nil {
		c.Said = append(c.Said, f.Evidence...)
	}
	switch {
	case f == nil:
		c.decide(Contradicted, "the server skips the number: its request has no such field")
	case c.fd.IsMap() && f.Label == "map":
		c.decide(Confirmed, "the server reads it as a map")
		c.Open = "the types of its keys and values"
	case f.Class == "" && c.as == asVarint:
		c.decide(Undecided, "the server knows the number, as a varint or a message")
	case f.Class == classOfConsumption(c) && f.Label == "" || f.Class == classOfConsumption(c) && f.Label == c.Label:
		c.decide(Undecided, "the server's answers do not agree with each other")
	case f.Class == "":
		c.decide(Contradicted, "the server reads it as a varint or a message")
	case f.Kind == "group":
		c.decide(Contradicted, "the server reads it as a group")
	case f.Label == "map":
		c.decide(Contradicted, "the server reads it as a map")
	default:
		c.decide(Contradicted, "the server reads it as %s", strings.TrimSpace(f.Label+" "+string(f.Class)))
	}
}

func classOfConsumption(c *claim) Class {
	switch {
	case c.isMessage():
		return Message
	case c.as == asLen:
		return Len
	case c.as == asFixed32:
		return Fixed32
	case c.as == asFixed64:
		return Fixed64
	}
	return Varint
}

// find asks what a number is, whatever the definitions say; nil: nothing.
func (v *esVerifier) find(ctx context.Context, c *claim) (*Field, error) {
	o := v.o.Options
	o.First, o.Last, o.Hints = c.Number, c.Number, nil
	m := newESMessage(v.c, &o, c.of.path)
	m.hints = nil
	weight := 0
	for _, k := range c.of.claims {
		slots := map[consumption]slot{asVarint: slotVarint, asLen: slotLen, asFixed32: slotFixed32, asFixed64: slotFixed64}
		if k != c && k.state == passed && !k.isMessage() {
			m.found[k.Number] = &esField{number: k.Number, slot: slots[k.as]}
			if weight++; k.as != asVarint {
				weight++
			}
		}
	}
	if err := m.run(ctx); err != nil {
		return nil, err
	}
	res := &Result{}
	m.report(res)
	for i := range res.Fields {
		f := &res.Fields[i]
		if f.Number != c.Number {
			continue
		}
		if f.Class == Varint && f.Label == "singular" && weight < leastWeight { // too few numbers around it were asked about
			f.Class, f.Kind, f.Label = "", "", ""
		}
		return f, nil
	}
	return nil, nil
}

// isolate finds the claim that the parser gave up at without naming it.
func (v *esVerifier) isolate(ctx context.Context, marks []mark, a *answer) error {
	var claims []*claim
	for _, m := range marks {
		if m.part == partClass {
			claims = append(claims, m.claim)
		}
	}
	for len(claims) > 1 {
		half := map[*claim]bool{}
		for _, c := range claims[:len(claims)/2] {
			half[c] = true
		}
		b, marks := v.payload(half)
		next, err := v.c.ask(ctx, fmt.Sprintf("%d of the fields, to isolate one", len(half)), b)
		if err != nil {
			return err
		}
		index, s, _, ok := readCanary(next.message)
		switch {
		case ok && index == len(marks):
			claims = claims[len(half):]
			continue
		case ok && index < len(marks):
			return v.stumbled(ctx, marks[index], s, next)
		}
		claims, a = claims[:len(half)], next
	}
	if len(claims) == 0 {
		return &stopError{"the parser stumbles over what has no field in it"}
	}
	c := claims[0]
	c.say(v.c.requests, "the parser gave up: %s", quote(a.message))
	c.state = doubted
	return nil
}

// conclude says what follows, first for what the others' readings help with.
func (v *esVerifier) conclude(ctx context.Context) error {
	for _, c := range v.all {
		if c.state == doubted && c.reachable() {
			if err := v.settle(ctx, c); err != nil {
				return err
			}
		}
	}
	for _, c := range v.all {
		if c.state == passed && c.reachable() && c.isMessage() {
			if err := v.concludeMessage(ctx, c); err != nil {
				return err
			}
		}
	}
	if err := v.recursive(ctx); err != nil {
		return err
	}
	for _, c := range v.all {
		switch {
		case c.state != passed || !c.reachable():
		case c.as == asVarint && !c.isList() && !c.guarded && !c.hint.Varint:
			c.decide(Undecided, "the server reads it as a varint, or as a message whose fields are read like those around it")
		case c.as == asLen:
			c.decide(Confirmed, "the server reads the number with a length before its value")
			c.Open = "text or bytes, and whether it is repeated"
		default:
			c.decide(Confirmed, "the server reads the number as %s", strings.TrimPrefix(c.Label+" ", "singular ")+string(classOfConsumption(c)))
			c.Open = map[consumption]string{
				asVarint: "which of the kinds that are a varint", asFixed32: "fixed32, sfixed32 or float", asFixed64: "fixed64, sfixed64 or double",
			}[c.as]
		}
	}
	return nil
}

// recursive asks of single varints whether they are not messages of the type that
// they are in, whose fields are read like those around them: nested deeply, the
// parser gives up over those.
func (v *esVerifier) recursive(ctx context.Context) error {
	var rest []*claim
	for _, c := range v.all {
		if c.state == passed && c.reachable() && c.isNumber() && c.as == asVarint && !c.isList() && c.guarded && !c.hint.Varint {
			rest = append(rest, c)
		}
	}
	for len(rest) > 0 {
		n := min(len(rest), maxDeep)
		some := rest[:n]
		rest = rest[n:]
		for len(some) > 0 {
			var b []byte
			for _, c := range some {
				b = append(b, wrap(c.of.path, appendDeep(nil, c.Number))...)
			}
			a, err := v.c.ask(ctx, fmt.Sprintf("can %s be nested deeply, and %d more", some[0].Path, len(some)-1), appendEnd(b, 0))
			if err != nil {
				return err
			}
			if _, s, _, ok := readCanary(a.message); ok && s == slotEnd {
				break
			}
			if half := len(some) / 2; half > 0 { // one of them can
				rest = append(rest, some[half:]...)
				some = some[:half]
				continue
			}
			some[0].say(v.c.requests, "nested deeply, the parser gives up: %s", quote(a.message))
			some[0].decide(Contradicted, "the server reads it as a message of the type that it is in")
			some = nil
		}
	}
	return nil
}

// maxDeep is how many fields are nested deeply in one request: about a megabyte.
const maxDeep = 8

func (v *esVerifier) concludeMessage(ctx context.Context, c *claim) error {
	c.Open = "whether it is repeated"
	if c.fd.IsMap() {
		c.Open = "whether it is a map, and of what"
	}
	switch {
	case c.guarded || c.proven:
		c.decide(Confirmed, "the server reads it as a message: its fields are not those around it")
		return nil
	case c.hint.Len:
		c.decide(Confirmed, "the server reads it as a varint or a message, and took it with a length in the capture")
		return nil
	}
	f, err := v.find(ctx, c)
	if err != nil {
		return err
	}
	if f != nil && f.Class == Message {
		c.Said = append(c.Said, f.Evidence...)
		c.decide(Confirmed, "the server reads it as a message")
		return nil
	}
	c.Open = ""
	c.judge(f)
	return nil
}

// texts tells text from bytes, which protobuf-es 2 does: all that is said to be
// bytes at once, then a request a text.
func (v *esVerifier) texts(ctx context.Context) error {
	strict := false
	var loose []*claim
	for _, c := range v.all {
		if !c.isText() || c.Verdict != Confirmed {
			continue
		}
		a, err := v.c.ask(ctx, fmt.Sprintf("is %s text", c.Path), wrap(c.of.path, appendEnd(appendBadText(nil, c.Number), 0)))
		if err != nil {
			return err
		}
		_, s, _, ok := readCanary(a.message)
		switch {
		case a.parser && !ok && badTextES(a.message):
			strict = true
			c.say(v.c.requests, "text that is no UTF-8 is refused: %s", quote(a.message))
			c.decide(Confirmed, "the server reads the number as text")
			c.Open = "whether it is repeated"
		case ok && s == slotEnd:
			c.say(v.c.requests, "bytes that are no UTF-8 are taken")
			loose = append(loose, c)
		}
	}
	if !strict { // a server that looks at no text tells nothing
		return nil
	}
	for _, c := range loose {
		c.decide(Contradicted, "the server reads the number as bytes: it looks at other text, and not at this")
	}
	for _, c := range v.all {
		if c.as != asLen || c.isText() || c.Verdict != Confirmed {
			continue
		}
		a, err := v.c.ask(ctx, fmt.Sprintf("is %s bytes", c.Path), wrap(c.of.path, appendEnd(appendBadText(nil, c.Number), 0)))
		if err != nil {
			return err
		}
		_, s, _, ok := readCanary(a.message)
		switch {
		case a.parser && !ok && badTextES(a.message):
			c.say(v.c.requests, "bytes that are no UTF-8 are refused: %s", quote(a.message))
			c.decide(Contradicted, "the server reads the number as text")
		case ok && s == slotEnd:
			c.say(v.c.requests, "bytes that are no UTF-8 are taken")
			c.decide(Confirmed, "the server reads the number as bytes: it looks at text, and not at this")
			c.Open = "whether it is repeated"
		}
	}
	return nil
}
