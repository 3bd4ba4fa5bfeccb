package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/replay/outbound"
	"unwire/schema/compare"
)

// A Verdict is what a server's parser makes of one field of a definition.
type Verdict string

const (
	Confirmed    Verdict = "confirmed"    // it reads the number as the definition says, as far as its runtime lets one see
	Contradicted Verdict = "contradicted" // it does not
	Undecided    Verdict = "undecided"    // nothing that it said tells
)

// VerifyOptions says which definition to hold against which method. Request and
// what Options needs are needed; Names, Known and Numbers are not used.
type VerifyOptions struct {
	Options
	Request protoreflect.MessageDescriptor // what the definitions say the request is
	Seen    map[string]Hint                // what accepted requests show of fields, by path: "1.2"
}

// A VerifiedField is a field of the definitions with what came of asking.
//
// Shape: Said is the server's statement, and Concluded is ours.
type VerifiedField struct {
	Path      string   `json:"path"`    // of the field: "1.2"
	Message   string   `json:"message"` // full name
	Number    int32    `json:"number"`
	Name      string   `json:"name"`
	Type      string   `json:"type"`  // as the definition has it
	Label     string   `json:"label"` // "singular", "repeated" or "map"
	Verdict   Verdict  `json:"verdict"`
	Said      []string `json:"said"`
	Concluded string   `json:"concluded"`
	Open      string   `json:"open,omitempty"` // of a confirmed one: what the runtime does not let one see
}

// A Verification is what a server's parser made of a request's definition.
type Verification struct {
	V            int             `json:"v"`
	Method       string          `json:"method"`
	Request      string          `json:"request"` // full name, by the definitions
	RequestType  string          `json:"request_type"`
	Runtime      Runtime         `json:"runtime"`
	Protocol     string          `json:"protocol"`
	Kind         string          `json:"kind"`
	Requests     int             `json:"requests"`
	Resumed      int             `json:"resumed"`
	Bytes        int64           `json:"bytes"`
	Executed     int             `json:"executed"` // requests that may have run the handler
	Confirmed    int             `json:"confirmed"`
	Contradicted int             `json:"contradicted"`
	Undecided    int             `json:"undecided"`
	Stopped      string          `json:"stopped,omitempty"`
	Reason       outbound.Reason `json:"reason,omitempty"` // why a request got no answer
	Notes        []string        `json:"notes"`
	Claims       []VerifiedField `json:"fields"`
}

// Verify holds the definition of a method's request against what the server's
// parser says.
//
// Shape: every message that it sends ends with bytes that no parser takes, so
// that no handler gets one. A message type is asked about once, where it is
// found first; Options.Depth levels are followed.
// Limits: Options' Budget, Rate and Timeout; 3,000 fields.
// Errors: those of Run.
//
// Source: RESEARCH.md#verify
func Verify(ctx context.Context, o VerifyOptions) (*Verification, error) {
	if o.Request == nil {
		return nil, errors.New("probe: no definition to verify")
	}
	if err := o.defaults(); err != nil {
		return nil, err
	}
	o.Names = nil
	c, err := newClient(&o.Options)
	if err != nil {
		return nil, err
	}
	defer c.close()
	v := &verifier{c: c, o: &o, res: &Result{V: 1}}
	v.collect()
	err = v.run(ctx)
	out := &Verification{
		V: 1, Method: o.Method, Request: string(o.Request.FullName()), RequestType: v.res.RequestType, Runtime: v.res.Runtime,
		Protocol: string(c.protocol), Kind: v.res.Kind, Requests: c.requests, Resumed: c.resumed, Bytes: c.bytes, Executed: c.executed,
	}
	var stop *stopError
	if errors.As(err, &stop) {
		out.Stopped, out.Reason, err = stop.Error(), stop.reason, nil
	}
	v.finish(out)
	return out, err
}

// A VerifyPlan says what Verify would send first, before it is known which
// runtime answers.
type VerifyPlan struct {
	V       int      `json:"v"`
	URL     string   `json:"url"`
	Request string   `json:"request"`
	Fields  int      `json:"fields"`
	Headers []string `json:"headers"` // secrets are left out
	Body    []byte   `json:"body"`    // the first message
	Steps   []Step   `json:"steps"`
	Budget  int      `json:"budget"`
	Rate    float64  `json:"rate"`
	Live    bool     `json:"live"`
	Effects []string `json:"effects"`
}

// NewVerifyPlan says what Verify would do, and sends nothing.
//
// Errors: replay.ErrRefused; of options.
func NewVerifyPlan(o *VerifyOptions) (*VerifyPlan, error) {
	p, err := NewPlan(&o.Options)
	if err != nil {
		return nil, err
	}
	all := *o
	v := &verifier{o: &all, res: &Result{V: 1}}
	v.collect()
	body, _ := (&esVerifier{verifier: v}).payload(nil)
	es := "one or two if the definition is right, and up to four a field that is not"
	if o.Refine {
		es += "; with protobuf-es 2 one more a text"
	}
	return &VerifyPlan{
		V: 1, URL: p.URL, Request: string(o.Request.FullName()), Fields: len(v.all), Headers: p.Headers, Body: body,
		Budget: p.Budget, Rate: p.Rate, Live: p.Live, Effects: p.Effects,
		Steps: []Step{
			{ES1, es, "class and label of every field; text from bytes in protobuf-es 2"},
			{ConnectGo, "about one a text and message, five a list of numbers, five a message for the rest", "text, messages, lists of numbers; of bytes and single numbers what they are not"},
		},
	}, nil
}

// maxClaims is how many fields are verified; each takes up to three canaries.
const maxClaims = 3000

// A claim is a VerifiedField with where its field is found.
type claim struct {
	VerifiedField
	fd    protoreflect.FieldDescriptor
	of    *level
	below *level // of the message that it is; nil where that is not followed
	as    consumption
	hint  Hint

	state   claimState
	proven  bool // it is a message, and no number
	guarded bool // what was sent would have shown if it were none
	guards  int  // of the ways to show it, how many were tried
	label   bool // it is doubted for its label
}

type claimState uint8

const (
	asking  claimState = iota
	passed             // nothing stumbled over it
	doubted            // something did
	decided            // Verdict and Concluded are set
)

// A level is a message of the request with the fields that it is said to have.
type level struct {
	path   []int32
	above  *claim // the field that it is; nil for the request
	claims []*claim
}

type verifier struct {
	c         *client
	o         *VerifyOptions
	res       *Result // of the fingerprint: runtime, type, notes
	root      *level
	all       []*claim // those above before those below
	levels    []*level
	truncated bool
}

// collect lists the fields of the request and of the messages in it.
func (v *verifier) collect() {
	seen := map[protoreflect.FullName]bool{v.o.Request.FullName(): true}
	v.root = &level{path: v.o.Path}
	types := []protoreflect.MessageDescriptor{v.o.Request}
	v.levels = []*level{v.root}
	for i := 0; i < len(v.levels); i++ {
		l, md := v.levels[i], types[i]
		for k := range md.Fields().Len() {
			if len(v.all) >= maxClaims {
				v.truncated = true
				return
			}
			c := newClaim(l, md.Fields().Get(k))
			c.hint = v.o.Seen[c.Path]
			v.all, l.claims = append(v.all, c), append(l.claims, c)
			sub := c.fd.Message()
			if sub == nil || c.fd.IsMap() || c.isGroup() || seen[sub.FullName()] || len(l.path)-len(v.o.Path) >= v.o.Depth {
				continue
			}
			seen[sub.FullName()] = true
			c.below = &level{path: append(slices.Clone(l.path), c.Number), above: c}
			v.levels, types = append(v.levels, c.below), append(types, sub)
		}
		slices.SortFunc(l.claims, func(a, b *claim) int { return int(a.Number) - int(b.Number) })
	}
}

func newClaim(l *level, fd protoreflect.FieldDescriptor) *claim {
	c := &claim{fd: fd, of: l, as: consumptionOf(fd.Kind()), VerifiedField: VerifiedField{
		Message: string(fd.ContainingMessage().FullName()), Number: int32(fd.Number()), Name: string(fd.Name()),
		Type: compare.TypeOf(fd), Label: "singular", Verdict: Undecided, Said: []string{},
	}}
	c.Path = pathText(append(slices.Clone(l.path), c.Number))
	switch {
	case fd.IsMap():
		c.Label = "map"
	case fd.IsList():
		c.Label = "repeated"
	}
	if c.isGroup() {
		c.decide(Undecided, "groups are not asked about")
	}
	return c
}

func consumptionOf(k protoreflect.Kind) consumption {
	switch k {
	case protoreflect.StringKind, protoreflect.BytesKind:
		return asLen
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return asFixed32
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return asFixed64
	}
	return asVarint // and messages, which are told apart from it
}

func (c *claim) isGroup() bool   { return c.fd.Kind() == protoreflect.GroupKind }
func (c *claim) isMessage() bool { return c.fd.Kind() == protoreflect.MessageKind }
func (c *claim) isList() bool    { return c.fd.IsList() }

func (c *claim) isText() bool { return c.fd.Kind() == protoreflect.StringKind }

// isNumber reports whether it is a number, of which there may be lists.
func (c *claim) isNumber() bool { return !c.isMessage() && !c.isGroup() && c.as != asLen }

func (c *claim) say(request int, format string, args ...any) {
	c.Said = append(c.Said, fmt.Sprintf("request %d: ", request)+fmt.Sprintf(format, args...))
}

func (c *claim) decide(verdict Verdict, format string, args ...any) {
	c.state, c.Verdict, c.Concluded = decided, verdict, fmt.Sprintf(format, args...)
	if verdict != Confirmed {
		c.Open = ""
	}
}

// reachable reports whether all messages that lead to a claim may still be what
// the definitions say.
func (c *claim) reachable() bool {
	for above := c.of.above; above != nil; above = above.of.above {
		if above.state == doubted || above.state == decided && above.Verdict != Confirmed {
			return false
		}
	}
	return true
}

// open reports whether there is something to ask of a claim.
func (c *claim) open() bool { return (c.state == asking || c.state == passed) && c.reachable() }

// run finds out the runtime, and asks it.
func (v *verifier) run(ctx context.Context) error {
	es := &esVerifier{verifier: v}
	first, _ := es.payload(nil)
	print, err := fingerprint(ctx, v.c, func() []byte { return first })
	v.res.Runtime, v.res.Kind = print.runtime, print.kind
	v.res.note(print.notes...)
	if err != nil {
		return err
	}
	switch print.runtime {
	case ES1, ES2:
		return es.run(ctx)
	case ConnectGo, GRPCGo:
		return (&goVerifier{verifier: v}).run(ctx)
	}
	v.res.note("the oracle is off: the answers do not say what the parser met, so nothing is claimed")
	return nil
}

// finish counts, and says of what was not settled why.
func (v *verifier) finish(out *Verification) {
	for _, c := range v.all {
		if c.Verdict == Undecided && c.Concluded == "" {
			switch {
			case out.Stopped != "" && (v.res.Runtime == "" || v.res.Runtime == Unknown):
				c.Concluded = "there was no answer that tells"
			case v.res.Runtime == "" || v.res.Runtime == Unknown:
				c.Concluded = "the server says nothing of what its parser met"
			case !c.reachable():
				c.Concluded = fmt.Sprintf("field %s, which leads to it, is not as the definitions say", c.of.above.Path)
			case out.Stopped != "":
				c.Concluded = "it was not asked about: the run was stopped"
			default:
				c.Concluded = "nothing that the server said tells"
			}
		}
		switch c.Verdict {
		case Confirmed:
			out.Confirmed++
		case Contradicted:
			out.Contradicted++
		default:
			out.Undecided++
		}
		out.Claims = append(out.Claims, c.VerifiedField)
	}
	slices.SortStableFunc(out.Claims, func(a, b VerifiedField) int { return slices.Compare(numbers(a.Path), numbers(b.Path)) })
	if v.truncated {
		v.res.note("the definitions have more fields than are verified at once: the first " + strconv.Itoa(maxClaims))
	}
	if t := v.res.RequestType; t != "" && t != out.Request {
		v.res.note(fmt.Sprintf("the server calls the request %s, the definitions %s", t, out.Request))
	}
	out.Notes = append([]string{}, v.res.Notes...)
	if out.Claims == nil {
		out.Claims = []VerifiedField{}
	}
}

// SeenIn enters the wire types of a captured message's fields, by path.
//
// Shape: a value is followed where the definitions say that it is a message.
func SeenIn(seen map[string]Hint, data []byte, md protoreflect.MessageDescriptor) {
	seenIn(seen, data, md, nil)
}

func seenIn(seen map[string]Hint, data []byte, md protoreflect.MessageDescriptor, path []int32) {
	if len(path) > maxDepth {
		return
	}
	eachField(data, func(n int32, t protowire.Type, value []byte) {
		at := append(slices.Clone(path), n)
		seen[pathText(at)] = seen[pathText(at)].and(t)
		if fd := md.Fields().ByNumber(protowire.Number(n)); fd != nil && t == protowire.BytesType && fd.Kind() == protoreflect.MessageKind && !fd.IsMap() {
			seenIn(seen, value, fd.Message(), at)
		}
	})
}
