package es

import (
	"context"
	"fmt"
	"strings"

	"unwire/replay/probe"
)

// A verifier checks a definition against a protobuf-es server. It sends one payload that the parser
// reads completely if the definition is right, up to the end that no parser accepts. Otherwise the
// parser stops at a canary, i.e. at an illegal tag that its error quotes. The canary identifies the
// field and the expectation that failed.
//
// Shape: after each part, the parser is in the same state as before, unless it stops. A field that
// stopped the parser is left out of the next payload.
type verifier struct {
	// server is the probed server.
	server *server

	// o are the options of the verification.
	o *probe.VerifyOptions

	// res receives notes.
	res *probe.Result

	// root is the request.
	root *level
	// all are all fields; a message precedes its fields.
	all []*claim
}

// A claim is a declared field while it is verified.
type claim struct {
	// Expectation has the declaration of the field and the verdict about it.
	*probe.Expectation

	// in is the message that has the field.
	in *level

	// below is the message that the field contains; nil if it is not verified.
	below *level

	// as is how the parser consumes the value if the declaration is right.
	as consumption

	// state is the progress of verifying the field.
	state claimState

	// proven means that the field is certainly a message and not a number.
	proven bool

	// guarded means that the field is a message, because the payload had a test (guard) at which the
	// parser would otherwise have stopped.
	guarded bool

	// guards is the number of guards that were tried for the field.
	guards int

	// label means that only the label of the field is in doubt.
	label bool
}

// A level is one message of the request, with the claims about its fields.
type level struct {
	// path are the field numbers that lead to the message.
	path []int32

	// above is the field that contains the message; nil for the request.
	above *claim

	// claims are the fields of the message.
	claims []*claim
}

// A claimState is the progress of verifying a field.
type claimState uint8

const (
	asking claimState = iota
	// the parser did not stop at the claim
	passed
	// the parser stopped at the claim
	doubted
	// Verdict and Concluded are set
	decided
)

// newVerifier returns a verifier for the definition d.
func newVerifier(c *probe.Client, o *probe.VerifyOptions, d *probe.Definition, res *probe.Result) *verifier {
	v := &verifier{server: newServer(c, &o.Options), o: o, res: res}
	levels := map[*probe.ExpectedMessage]*level{}
	claims := map[*probe.Expectation]*claim{}
	for _, m := range d.Messages {
		levels[m] = &level{path: m.Path, above: claims[m.Above]}
		for _, e := range m.Fields {
			claims[e] = &claim{Expectation: e, in: levels[m], as: consumptionOf(e.Class)}
			if e.Decided {
				claims[e].state = decided
			}
			levels[m].claims = append(levels[m].claims, claims[e])
		}
	}
	for _, e := range d.Fields {
		claims[e].below = levels[e.Below]
		v.all = append(v.all, claims[e])
	}
	v.root = levels[d.Messages[0]]
	return v
}

// FirstVerification returns the first message that a verification sends. The response of a protobuf-es
// server identifies the first field that is not as declared.
func FirstVerification(o *probe.VerifyOptions, d *probe.Definition) []byte {
	b, _ := newVerifier(nil, o, d, nil).payload(nil)
	return b
}

// consumptionOf returns how a parser consumes a value of class c.
func consumptionOf(c probe.Class) consumption {
	switch c {
	case probe.Len:
		return asLen
	case probe.Fixed32:
		return asFixed32
	case probe.Fixed64:
		return asFixed64
	}
	// messages too: they are distinguished later
	return asVarint
}

// decide sets the verdict about the field, and its reason, formatted as by fmt.Sprintf.
func (c *claim) decide(verdict probe.Verdict, format string, args ...any) {
	c.state = decided
	c.Expectation.Decide(verdict, format, args...)
}

// doubt records that the server does not read the field as declared. label means that only the label
// may be wrong.
func (c *claim) doubt(label bool) {
	c.state, c.Doubted, c.label = doubted, true, label
}

// Verify checks the definition d against the error messages of a protobuf-es server's parser.
func Verify(ctx context.Context, c *probe.Client, o *probe.VerifyOptions, d *probe.Definition, res *probe.Result) error {
	v := newVerifier(c, o, d, res)
	if err := requestType(ctx, v.server.Client, v.res); err != nil {
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
	if v.o.Refine && v.res.Runtime == probe.ES2 {
		return v.texts(ctx)
	}
	return nil
}

// ask sends a payload b, which tests several fields, and evaluates the response; done means that the
// parser reached the end. marks are the expectations that the canaries in b stand for.
func (v *verifier) ask(ctx context.Context, b []byte, marks []mark) (done bool, err error) {
	a, err := v.server.Ask(ctx, fmt.Sprintf("the definition of %s", v.o.Request.FullName()), b)
	if err != nil {
		return false, err
	}
	g := readCanary(a.Text)
	switch {
	case g.isEnd(len(marks)):
		for _, m := range marks {
			if m.claim.state == asking {
				m.claim.state = passed
				m.claim.Cite(v.server.Requests, "the parser accepted the field as %s, and then rejected the malformed end of the message: %s", v.expectation(m.claim), a.Quoted())
			}
		}
		return true, nil
	case g.canary && g.index < len(marks):
		return false, v.stumbled(ctx, marks[g.index], g.slot, a)
	case a.FromParser:
		return false, v.isolate(ctx, marks, a)
	}
	return false, probe.Stop("the answer to request %d contains no error of the server's parser: %s", v.server.Requests, a.Brief())
}

// expectation returns the declared label and type of a field for the user.
func (v *verifier) expectation(c *claim) string {
	if c.Label == "repeated" {
		return "repeated " + c.Type
	}
	return c.Type
}

// stumbled records that the parser did not read a field as declared: it stopped at the canary of m, in
// slot s.
func (v *verifier) stumbled(ctx context.Context, m mark, s slot, a *probe.Answer) error {
	c := m.claim
	if m.part == partInside || m.part == partOutside {
		// The server has a field that the definitions lack, or c is a number.
		c.guards++
		return nil
	}
	if above := c.in.above; above != nil && !above.proven {
		if err := v.prove(ctx, above); err != nil || !c.Reachable() {
			return err
		}
	}
	c.Cite(v.server.Requests, "the parser rejected the field: %s", a.Quoted())
	switch {
	case m.part == partLabel && c.as != asVarint && c.IsList:
		c.decide(probe.Contradicted, "the server parses the field as a single number, not as repeated numbers")
		return nil
	case m.part == partLabel && (c.as != asVarint || s == slotPacked && (c.IsMessage || !c.IsList)):
		c.decide(probe.Contradicted, "the server parses the field as repeated numbers, not as a single one")
		return nil
	}
	c.doubt(m.part == partLabel)
	return nil
}

// findActual determines the actual type of a field that the server does not read as declared.
func (v *verifier) findActual(ctx context.Context, c *claim) error {
	f, err := v.find(ctx, c)
	if err != nil {
		return err
	}
	if c.label && f != nil && f.Class == "" && c.IsList {
		c.decide(probe.Contradicted, "the server parses the field as a single varint or a message, not as repeated")
		return nil
	}
	c.judge(f)
	return nil
}

// prove determines whether a field with unexpected content is a message at all.
func (v *verifier) prove(ctx context.Context, c *claim) error {
	if above := c.in.above; above != nil && !above.proven {
		if err := v.prove(ctx, above); err != nil || !c.Reachable() {
			return err
		}
	}
	f, err := v.find(ctx, c)
	switch {
	case err != nil:
		return err
	case f != nil && f.Class == probe.Message:
		c.proven = true
	case f != nil && f.Class == "" && c.Hint.Len:
		c.proven = true
	case f != nil && f.Class == "":
		c.decide(probe.Undecided, "the field is a number, or a message with fields of the same types as those of the message around it")
	default:
		c.judge(f)
	}
	return nil
}

// judge decides a field that the server does not read as declared, from f, the field that the server
// was found to have; nil if it has none.
func (c *claim) judge(f *probe.Field) {
	if f != nil {
		c.Said = append(c.Said, f.Evidence...)
	}
	switch {
	case f == nil:
		c.decide(probe.Contradicted, "the server ignores the field number: its request type has no such field")
	case c.Descriptor.IsMap() && f.Label == "map":
		c.decide(probe.Confirmed, "the server parses the field as a map")
		c.Open = "the types of its keys and values"
	case f.Class == "" && c.as == asVarint:
		c.decide(probe.Undecided, "the server has a field with this number, which is a varint or a message")
	case f.Class == c.Class && f.Label == "" || f.Class == c.Class && f.Label == c.Label:
		c.decide(probe.Undecided, "the server's answers contradict each other")
	case f.Class == "":
		c.decide(probe.Contradicted, "the server parses the field as a varint or a message")
	case f.Kind == "group":
		c.decide(probe.Contradicted, "the server parses the field as a group")
	case f.Label == "map":
		c.decide(probe.Contradicted, "the server parses the field as a map")
	default:
		c.decide(probe.Contradicted, "the server parses the field as %s", strings.TrimSpace(f.Label+" "+string(f.Class)))
	}
}

// find probes the number of a field without using the definition; the result is nil if the server has
// no such field.
func (v *verifier) find(ctx context.Context, c *claim) (*probe.Field, error) {
	m := newMessage(v.server, c.in.path, probe.Numbers{{First: c.Number, Last: c.Number}})
	m.hints = nil
	weight := 0
	for _, k := range c.in.claims {
		slots := map[consumption]slot{asVarint: slotVarint, asLen: slotLen, asFixed32: slotFixed32, asFixed64: slotFixed64}
		if k != c && k.state == passed && !k.IsMessage {
			m.found[k.Number] = &field{number: k.Number, slot: slots[k.as]}
			if weight++; k.as != asVarint {
				weight++
			}
		}
	}
	if err := m.run(ctx); err != nil {
		return nil, err
	}
	res := &probe.Result{Complete: map[string]bool{}}
	m.report(res)
	for i := range res.Fields {
		f := &res.Fields[i]
		if f.Number != c.Number {
			continue
		}
		// Too few numbers around it were probed.
		if f.Class == probe.Varint && f.Label == "singular" && weight < leastWeight {
			f.Class, f.Kind, f.Label = "", "", ""
		}
		return f, nil
	}
	return nil, nil
}

// isolate determines, by bisection, the field at which the parser stopped without quoting a canary.
func (v *verifier) isolate(ctx context.Context, marks []mark, a *probe.Answer) error {
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
		next, err := v.server.Ask(ctx, fmt.Sprintf("%d of the fields, to isolate one", len(half)), b)
		if err != nil {
			return err
		}
		g := readCanary(next.Text)

		// The first half passed: the claim is in the second half.
		switch {
		case g.canary && g.index == len(marks):
			claims = claims[len(half):]
			continue
		case g.canary && g.index < len(marks):
			return v.stumbled(ctx, marks[g.index], g.slot, next)
		}
		claims, a = claims[:len(half)], next
	}
	if len(claims) == 0 {
		return probe.Stop("the server's parser reports an error for a request without the tested fields")
	}
	c := claims[0]
	c.Cite(v.server.Requests, "the parser rejected the nesting: %s", a.Quoted())
	c.doubt(false)
	return nil
}

// conclude decides all fields, beginning with those that help to decide others.
func (v *verifier) conclude(ctx context.Context) error {
	// First find out what the server has where it refused the definition: that helps to judge the
	// rest.
	for _, c := range v.all {
		if c.state == doubted && c.Reachable() {
			if err := v.findActual(ctx, c); err != nil {
				return err
			}
		}
	}
	for _, c := range v.all {
		if c.state == passed && c.Reachable() && c.IsMessage {
			if err := v.concludeMessage(ctx, c); err != nil {
				return err
			}
		}
	}
	if err := v.recursive(ctx); err != nil {
		return err
	}

	// What passed all tests is confirmed, as far as the wire format can show it.
	for _, c := range v.all {
		switch {
		case c.state != passed || !c.Reachable():
		case c.as == asVarint && !c.IsList && !c.guarded && !c.Hint.Varint:
			c.decide(probe.Undecided, "the server parses the field as a varint, or as a message with fields of the same types as those of the message around it")
		case c.as == asLen:
			c.decide(probe.Confirmed, "the server parses the field as length-delimited")
			c.Open = "whether the field is string or bytes, and whether it is repeated"
		default:
			c.decide(probe.Confirmed, "the server parses the field as %s", strings.TrimPrefix(c.Label+" ", "singular ")+string(c.Class))
			c.Open = c.OpenType
		}
	}
	return nil
}

// recursive tests whether fields that look like varints are messages of the same type as their parent.
// Such a field can be nested until the parser reports excessive depth.
func (v *verifier) recursive(ctx context.Context) error {
	var rest []*claim
	for _, c := range v.all {
		if c.state == passed && c.Reachable() && c.IsNumber && c.as == asVarint && !c.IsList && c.guarded && !c.Hint.Varint {
			rest = append(rest, c)
		}
	}

	// Test several at once; if the parser gives up, bisect.
	for len(rest) > 0 {
		n := min(len(rest), maxDeep)
		some := rest[:n]
		rest = rest[n:]
		for len(some) > 0 {
			var b []byte
			for _, c := range some {
				b = append(b, probe.Wrap(c.in.path, appendDeep(nil, c.Number, tooDeep))...)
			}
			a, err := v.server.Ask(ctx, fmt.Sprintf("can %s be nested deeply, and %d more", some[0].Path, len(some)-1), appendEnd(b, 0))
			if err != nil {
				return err
			}
			if g := readCanary(a.Text); g.canary && g.slot == slotEnd {
				break
			}
			// one of them can be nested
			if half := len(some) / 2; half > 0 {
				rest = append(rest, some[half:]...)
				some = some[:half]
				continue
			}
			some[0].Cite(v.server.Requests, "the parser rejected deeply nested copies of the field: %s", a.Quoted())
			some[0].decide(probe.Contradicted, "the server parses the field as a message of the same type as the message that contains it")
			some = nil
		}
	}
	return nil
}

// maxDeep limits how many fields are nested deeply in one request, which then has about a megabyte.
const maxDeep = 8

// concludeMessage decides a field that is declared as a message and was not contradicted.
func (v *verifier) concludeMessage(ctx context.Context, c *claim) error {
	c.Open = "whether the field is repeated"
	if c.Descriptor.IsMap() {
		c.Open = "whether it is a map, and the types of its keys and values"
	}
	switch {
	case c.guarded || c.proven:
		c.decide(probe.Confirmed, "the server parses the field as a message, whose fields differ from those of the message around it")
		return nil
	case c.Hint.Len:
		c.decide(probe.Confirmed, "the server parses the field as a varint or a message, and accepted it as a message in the captured call")
		return nil
	}
	f, err := v.find(ctx, c)
	if err != nil {
		return err
	}
	if f != nil && f.Class == probe.Message {
		c.Said = append(c.Said, f.Evidence...)
		c.decide(probe.Confirmed, "the server parses the field as a message")
		return nil
	}
	c.Open = ""
	c.judge(f)
	return nil
}

// texts distinguishes strings from bytes, which only works with protobuf-es 2. It takes a request
// for each string, and then one for each field that is defined as bytes.
func (v *verifier) texts(ctx context.Context) error {
	strict := false
	var loose []*claim
	for _, c := range v.all {
		if !c.IsText || c.Verdict != probe.Confirmed {
			continue
		}
		a, taken, refused, err := v.sendBadText(ctx, c, "text")
		switch {
		case err != nil:
			return err
		case refused:
			strict = true
			c.Cite(v.server.Requests, "the server rejects invalid UTF-8 in the field: %s", a.Quoted())
			c.decide(probe.Confirmed, "the server parses the field as string")
			c.Open = "whether the field is repeated"
		case taken:
			c.Cite(v.server.Requests, "the server accepts invalid UTF-8 in the field")
			loose = append(loose, c)
		}
	}
	// a server that does not validate UTF-8 decides nothing
	if !strict {
		return nil
	}
	for _, c := range loose {
		c.decide(probe.Contradicted, "the server parses the field as bytes: it checks the UTF-8 of other strings, but not of this field")
	}
	return v.bytes(ctx)
}

// bytes verifies fields that are defined as bytes, if the server is known to validate UTF-8.
func (v *verifier) bytes(ctx context.Context) error {
	for _, c := range v.all {
		if c.as != asLen || c.IsText || c.Verdict != probe.Confirmed {
			continue
		}
		a, taken, refused, err := v.sendBadText(ctx, c, "bytes")
		switch {
		case err != nil:
			return err
		case refused:
			c.Cite(v.server.Requests, "the server rejects invalid UTF-8 in the field: %s", a.Quoted())
			c.decide(probe.Contradicted, "the server parses the field as string")
		case taken:
			c.Cite(v.server.Requests, "the server accepts invalid UTF-8 in the field")
			c.decide(probe.Confirmed, "the server parses the field as bytes: it checks the UTF-8 of strings, but not of this field")
			c.Open = "whether the field is repeated"
		}
	}
	return nil
}

// sendBadText sends invalid UTF-8 in a field. taken means that the parser accepted it, and refused that
// it rejected it as a string. what describes the request in the journal.
func (v *verifier) sendBadText(ctx context.Context, c *claim, what string) (a *probe.Answer, taken, refused bool, err error) {
	a, err = v.server.Ask(ctx, fmt.Sprintf("is %s %s", c.Path, what), probe.Wrap(c.in.path, appendEnd(probe.AppendBadText(nil, c.Number), 0)))
	if err != nil {
		return nil, false, false, err
	}
	g := readCanary(a.Text)
	return a, g.canary && g.slot == slotEnd, a.FromParser && !g.canary && refusesText(a.Text), nil
}
