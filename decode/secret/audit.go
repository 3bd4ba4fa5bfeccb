package secret

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/captures/redact"
	"unwire/captures/store"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/fieldpath"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// maxFindings bounds what an audit lists; more are counted in Findings already
// listed, or left out.
const maxFindings = 10_000

// A Finding is what looks like a secret at one place of an exchange, without
// its value.
//
// Shape: Place is "url", "request header", "request trailer", "response header",
// "response trailer", "error", "frame" or "body" (bytes that are no frames).
// Name is the header's, parameter's, member's or protobuf field's, or what a key
// begins with. A finding of rule RuleUnsearched is no secret but bytes of a body
// or a URL that could not be searched, Len of them, and Name says why. Of several hits at one place in frames of one direction, Seq, Off
// and Len are those of the first. Off counts from the beginning of the value, the
// URL, or the frame's data after decompression; Encoding says in which text
// encoding of the field at Path it is counted in.
type Finding struct {
	Exchange int64
	Part     bool // the exchange is a piece of a conversation, and meant alone
	Rule     redact.Rule
	Place    string
	Header   string // the header field it is in
	Name     string
	Dir      captures.Direction // of a frame or a body
	Seq      int                // of a frame
	Path     fieldpath.Path     // of the field, where the frame is protobuf
	Encoding string
	Off, Len int
	Count    int

	// Stays is true if Clean does not remove it.
	Stays bool
}

// Audit returns what looks like a secret in a capture, each place once.
//
// Shape: red has the rules, and learns: a value that a header gives away
// anywhere in the capture is found in all of it.
// Limits: 10,000 findings; with more, the error says so. The limits of
// redact.Redactor and of decode.Decode hold.
// Errors: of the store.
func Audit(ctx context.Context, src *store.Store, red *redact.Redactor, rules *Rules) ([]Finding, error) {
	for ex, err := range src.Exchanges(ctx) {
		if err != nil {
			return nil, err
		}
		learnFrom(red, ex)
	}
	pieces, err := conversation.FindAll(ctx, src)
	if err != nil {
		return nil, err
	}
	notes, err := src.Notes(ctx, 0)
	if err != nil {
		return nil, err
	}
	var all []Finding
	for ex, err := range src.Exchanges(ctx) {
		if err != nil {
			return all, err
		}
		a := auditor{red: red, rules: rules, ex: ex, part: pieces.Head(ex.ID) != 0, places: make(map[string]int)}
		a.head()
		if err := a.bodies(ctx, src); err != nil {
			return append(all, a.found...), err
		}
		a.notes(notes)
		if all = append(all, a.found...); len(all) >= maxFindings {
			return all[:maxFindings], fmt.Errorf("decode/secret: more than %d findings: the rest is left out", maxFindings)
		}
	}
	return all, markStays(ctx, src, red, rules, all)
}

// markStays looks for the findings in what Clean would make of the capture.
func markStays(ctx context.Context, src *store.Store, red *redact.Redactor, rules *Rules, all []Finding) error {
	if len(all) == 0 {
		return nil
	}
	view, err := NewView(ctx, src, red.Omitting(), rules)
	if err != nil {
		return err
	}
	for from := 0; from < len(all); {
		to := from
		for to < len(all) && all[to].Exchange == all[from].Exchange {
			to++
		}
		ex, err := view.Exchange(ctx, all[from].Exchange)
		if err != nil {
			return err
		}
		a := auditor{red: red, rules: rules, ex: ex, part: all[from].Part, places: make(map[string]int)}
		a.head()
		if err := a.bodies(ctx, view); err != nil {
			return err
		}
		for i := from; i < to; i++ {
			_, all[i].Stays = a.places[all[i].place()]
		}
		from = to
	}
	return nil
}

// learnFrom has the redactor meet the secrets of an exchange's head.
func learnFrom(red *redact.Redactor, ex *captures.Exchange) {
	for _, h := range []captures.Headers{ex.RequestHeaders, ex.ResponseHeaders, ex.RequestTrailers, ex.ResponseTrailers} {
		red.FindHeaders(h)
	}
	red.FindURL(ex.URL)
}

// An auditor looks at one exchange.
type auditor struct {
	red    *redact.Redactor
	rules  *Rules
	ex     *captures.Exchange
	part   bool
	found  []Finding
	places map[string]int // index in found
}

// addFinding notes a finding, or counts it where its place is known.
func (a *auditor) addFinding(f Finding) {
	f.Exchange, f.Part = a.ex.ID, a.part
	key := f.place()
	if i, ok := a.places[key]; ok {
		a.found[i].Count++
		return
	}
	if len(a.found) >= maxFindings {
		return
	}
	f.Count = max(1, f.Count)
	a.places[key] = len(a.found)
	a.found = append(a.found, f)
}

// place is what findings of one place have in common.
func (f *Finding) place() string {
	return strings.Join([]string{f.Place, f.Dir.String(), string(f.Rule), strings.ToLower(f.Header), f.Name, f.Path.String(), f.Encoding}, "\x00")
}

// hit is a finding made of what a rule of bytes found.
func hit(h redact.Hit, place string) Finding {
	return Finding{Rule: h.Rule, Place: place, Header: h.Header, Name: h.Name, Off: h.Off, Len: h.Len}
}

// head looks at all but the bodies.
func (a *auditor) head() {
	for _, s := range []struct {
		place  string
		fields captures.Headers
	}{
		{"request header", a.ex.RequestHeaders},
		{"request trailer", a.ex.RequestTrailers},
		{"response header", a.ex.ResponseHeaders},
		{"response trailer", a.ex.ResponseTrailers},
	} {
		for _, h := range a.red.FindHeaders(s.fields) {
			a.addFinding(hit(h, s.place))
		}
	}
	for _, h := range a.red.FindURL(a.ex.URL) {
		a.addFinding(hit(h, "url"))
	}
	for _, h := range a.red.FindString(a.ex.Error) {
		a.addFinding(hit(h, "error"))
	}
}

// notes looks at the notes about the exchange, of those of the capture.
func (a *auditor) notes(list []captures.Note) {
	for _, n := range list {
		if n.Exchange != a.ex.ID {
			continue
		}
		for _, h := range a.red.FindString(n.Value) {
			a.addFinding(hit(h, "note"))
		}
	}
}

// bodies looks at the frames, and at bytes that are none.
func (a *auditor) bodies(ctx context.Context, src captures.Source) error {
	if err := a.unsearched(ctx, src); err != nil {
		return err
	}
	d, err := decode.Decode(ctx, src, a.ex.ID, decode.Options{})
	if err != nil {
		return err
	}
	var frames [2]int
	for i := range d.Frames {
		f := &d.Frames[i]
		frames[f.Dir]++
		a.frame(d, f)
	}
	if !hasRawBodies(d) {
		return nil
	}
	raw, err := rawBodies(ctx, src, a.ex.ID)
	if err != nil {
		return err
	}
	for dir, p := range raw {
		if d.Err == nil && frames[dir] > 0 {
			continue
		}
		for _, h := range a.red.Find(p, a.isForm(captures.Direction(dir))) {
			f := hit(h, "body")
			f.Dir = captures.Direction(dir)
			a.addFinding(f)
		}
	}
	return nil
}

// unsearched looks for what cannot be searched, one finding for each direction
// and reason.
func (a *auditor) unsearched(ctx context.Context, src captures.Source) error {
	runs, err := a.red.FindUnsearched(ctx, src, a.ex)
	if err != nil {
		return err
	}
	for dir := captures.Up; dir <= captures.Down; dir++ {
		var found []Finding
		for _, u := range runs {
			if u.Dir != dir {
				continue
			}
			i := slices.IndexFunc(found, func(f Finding) bool { return f.Name == u.Reason })
			if i < 0 {
				i = len(found)
				found = append(found, Finding{Rule: redact.RuleUnsearched, Place: "body", Name: u.Reason, Dir: dir, Off: int(u.Start)})
			}
			found[i].Len += int(u.Bytes())
			found[i].Count++
		}
		for _, f := range found {
			a.addFinding(f)
		}
	}
	return nil
}

func (a *auditor) isForm(dir captures.Direction) bool {
	h := a.ex.RequestHeaders
	if dir == captures.Down {
		h = a.ex.ResponseHeaders
	}
	return strings.HasPrefix(strings.ToLower(h.Get("content-type")), "application/x-www-form-urlencoded")
}

// frame looks at a frame's data and at the messages inside its fields.
func (a *auditor) frame(d *decode.Exchange, f *decode.Frame) {
	at := Finding{Place: "frame", Dir: f.Dir, Seq: f.Seq}
	data := f.Data
	if len(data) == 0 {
		data = f.Raw // it does not inflate
	}
	a.message(at, data, f.Tree, a.rules.frameType(d.Call, f.Dir), d.Choices[f.Dir&1], a.isForm(f.Dir))
	for _, in := range f.Inner {
		inner := at
		inner.Path, inner.Encoding = f.Tree.FieldPath(in.Node), in.Encoding
		a.message(inner, in.Data, in.Tree, a.rules.innerType(d.Call, f.Dir), nil, false)
	}
}

// message looks at one message, by its bytes and by its type.
func (a *auditor) message(at Finding, data []byte, t *wire.Tree, md protoreflect.MessageDescriptor, choices []kind.Choice, form bool) {
	covered := make(map[int]bool)
	for _, v := range a.rules.typed(a.red, t, md, choices) {
		f, n := at, t.Node(v.node)
		f.Rule, f.Name, f.Off, f.Len = v.rule, v.field, n.Val, n.End-n.Val
		f.Path = append(append(fieldpath.Path(nil), at.Path...), t.FieldPath(v.node)...)
		covered[n.Val] = true
		a.addFinding(f)
	}
	for _, h := range a.red.Find(data, form) {
		if covered[h.Off] {
			continue // the field tells more
		}
		f := at
		f.Rule, f.Name, f.Off, f.Len = h.Rule, h.Name, h.Off, h.Len
		if t != nil {
			if i := t.At(h.Off); i > 0 && t.Node(i).Type != wire.Garbage {
				f.Path = append(append(fieldpath.Path(nil), at.Path...), t.FieldPath(i)...)
			}
		}
		a.addFinding(f)
	}
}

// hasRawBodies reports whether there are bytes in an exchange's bodies that are
// in no frame.
func hasRawBodies(d *decode.Exchange) bool {
	var frames [2]int
	for i := range d.Frames {
		frames[d.Frames[i].Dir]++
	}
	return d.Err != nil || frames[captures.Up] == 0 && d.BytesUp > 0 || frames[captures.Down] == 0 && d.BytesDown > 0
}

// rawBodies are an exchange's bodies as they passed.
func rawBodies(ctx context.Context, src captures.ChunkSource, id int64) (raw [2][]byte, err error) {
	for c, err := range src.Chunks(ctx, id, 0) {
		if err != nil {
			return raw, err
		}
		raw[c.Dir] = append(raw[c.Dir], c.Data...)
	}
	return raw, nil
}
