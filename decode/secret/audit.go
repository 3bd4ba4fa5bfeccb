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

// maxFindings is the maximum number of findings in an audit. Further secrets are counted in findings for the same
// place, or omitted.
const maxFindings = 10_000

// A Finding is a probable secret at one place of an exchange. It does not contain the secret's value.
//
// A finding with the rule redact.RuleUnsearched is not a secret, but a range of a body or URL that
// could not be searched.
type Finding struct {
	// Exchange is the number of the exchange with the secret.
	Exchange int64

	// Part means that the secret is in a call that is one of several calls of a conversation (a stream that was
	// split over calls), and not in the joined messages.
	Part bool

	// Rule is the rule that recognised the secret.
	Rule redact.Rule

	// Place is "url", "request header", "request trailer", "response header", "response trailer", "error",
	// "note", "frame", or "body" for bytes that are not in frames.
	Place string

	// Header is the name of the header that contains the secret.
	Header string

	// Name is the name of the header, parameter, member or protobuf field, or the characteristic beginning of a
	// key. For redact.RuleUnsearched it is the reason.
	Name string

	// Dir is the direction of the frame or body with the secret.
	Dir captures.Direction

	// Seq is the number of the frame. If a place has several hits, Seq, Off and Len are those of the first.
	Seq int

	// Path is the path of the field, if the frame is protobuf.
	Path fieldpath.Path

	// Encoding is the text encoding that was undone in the field before Off was counted, such as base64; or "".
	Encoding string

	// Off is the offset in bytes from the beginning of the value, the URL, or the frame's decompressed data. Len
	// is the length in bytes.
	Off, Len int

	// Count is the number of times that the rule found a secret at the place.
	Count int

	// Stays means that Clean cannot remove the secret from a copy.
	Stays bool
}

// Audit returns the places of probable secrets in a capture, each once.
//
// Shape: red provides the rules and learns secrets: a value that a header identifies as secret is then
// searched for in the whole capture.
//
// Limits: 10,000 findings; with more, Audit returns an error. The limits of redact.Redactor and
// decode.Decode apply.
//
// Errors: errors of the store.
func Audit(ctx context.Context, src *store.Store, red *redact.Redactor, rules *Rules) ([]Finding, error) {
	// Learn all secrets first, because they may occur in earlier exchanges as well.
	for ex, err := range src.Exchanges(ctx) {
		if err != nil {
			return nil, err
		}
		learnFrom(red, ex)
	}

	// Findings in pieces of conversations are reported as such.
	pieces, err := conversation.FindAll(ctx, src)
	if err != nil {
		return nil, err
	}
	notes, err := src.Notes(ctx, 0)
	if err != nil {
		return nil, err
	}

	// Then search each exchange.
	var all []Finding
	o := decode.Options{NoChoices: !decode.HasChoices(ctx, src)}
	for ex, err := range src.Exchanges(ctx) {
		if err != nil {
			return all, err
		}
		a := auditor{red: red, rules: rules, ex: ex, options: o, part: pieces.Head(ex.ID) != 0, places: make(map[string]int)}
		a.searchHead()
		if err := a.searchBodies(ctx, src); err != nil {
			return append(all, a.found...), err
		}
		a.searchNotes(notes)
		if all = append(all, a.found...); len(all) >= maxFindings {
			return all[:maxFindings], fmt.Errorf("more than %d values look like secrets; the rest is not reported", maxFindings)
		}
	}
	return all, markStays(ctx, src, red, rules, all)
}

// markStays sets Stays of those findings in all that also exist in a view of src without its secrets, i.e. that
// Clean cannot remove.
func markStays(ctx context.Context, src *store.Store, red *redact.Redactor, rules *Rules, all []Finding) error {
	if len(all) == 0 {
		return nil
	}

	// Search the cleaned copy in the same way, and compare the places.
	view, err := NewView(ctx, src, red.Omitting(), rules)
	if err != nil {
		return err
	}
	// Findings are in the order of exchanges.
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
		a.searchHead()
		if err := a.searchBodies(ctx, view); err != nil {
			return err
		}
		for i := from; i < to; i++ {
			_, all[i].Stays = a.places[all[i].place()]
		}
		from = to
	}
	return nil
}

// learnFrom adds the secrets in an exchange's URL and headers to the values that the redactor searches for
// everywhere.
func learnFrom(red *redact.Redactor, ex *captures.Exchange) {
	for _, h := range []captures.Headers{ex.RequestHeaders, ex.ResponseHeaders, ex.RequestTrailers, ex.ResponseTrailers} {
		red.FindHeaders(h)
	}
	red.FindURL(ex.URL)
}

// An auditor searches one exchange for secrets.
type auditor struct {
	// red finds secrets by the form and the name of a value.
	red *redact.Redactor

	// rules decide which fields are secret, by path or name.
	rules *Rules

	// ex is the exchange (one recorded call) that is searched.
	ex *captures.Exchange

	// options are the options for decoding the exchange.
	options decode.Options

	// part means that the exchange is one of the calls of a conversation (a stream that was split over calls).
	part bool

	// found are the secrets found in the exchange so far; findings at the same place are counted in one element.
	found []Finding

	// places maps the key of each place (see Finding.place) to its index in found.
	places map[string]int
}

// addFinding adds a finding, or increments the count of an earlier one at the same place.
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

// place returns a key that is equal for findings of the same place.
func (f *Finding) place() string {
	return strings.Join([]string{f.Place, f.Dir.String(), string(f.Rule), strings.ToLower(f.Header), f.Name, f.Path.String(), f.Encoding}, "\x00")
}

// hit returns the finding for a secret that the redactor found in bytes; place is as in Finding.Place.
func hit(h redact.Hit, place string) Finding {
	return Finding{Rule: h.Rule, Place: place, Header: h.Header, Name: h.Name, Off: h.Off, Len: h.Len}
}

// searchHead searches everything in the exchange except its bodies: headers, trailers, URL and error.
func (a *auditor) searchHead() {
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

// searchNotes searches the users' notes about the exchange. list has all notes of the capture.
func (a *auditor) searchNotes(list []captures.Note) {
	for _, n := range list {
		if n.Exchange != a.ex.ID {
			continue
		}
		for _, h := range a.red.FindString(n.Value) {
			a.addFinding(hit(h, "note"))
		}
	}
}

// searchBodies searches the frames, and bytes that are not in frames.
func (a *auditor) searchBodies(ctx context.Context, src captures.Source) error {
	if err := a.addUnsearched(ctx, src); err != nil {
		return err
	}
	d, err := decode.DecodeRecord(ctx, src, a.ex, a.options)
	if err != nil {
		return err
	}

	// The number of decoded frames per direction decides below whether the raw body needs a search.
	var frames [2]int
	for i := range d.Frames {
		f := &d.Frames[i]
		frames[f.Dir]++
		a.searchFrame(d, f)
	}

	if !hasRawBodies(d) {
		return nil
	}
	raw, err := rawBodies(ctx, src, a.ex.ID)
	if err != nil {
		return err
	}
	// Frames have been searched in decoded form, unless decoding failed.
	for dir, p := range raw {
		if d.Err == nil && frames[dir] > 0 {
			continue
		}
		for _, h := range a.red.Find(p, a.isForm(captures.Direction(dir)), a.ex.URL) {
			f := hit(h, "body")
			f.Dir = captures.Direction(dir)
			a.addFinding(f)
		}
	}

	return nil
}

// addUnsearched adds a finding for each direction and each reason for which bytes cannot be searched.
func (a *auditor) addUnsearched(ctx context.Context, src captures.Source) error {
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

// isForm reports whether a body is a URL-encoded form.
func (a *auditor) isForm(dir captures.Direction) bool {
	h := a.ex.RequestHeaders
	if dir == captures.Down {
		h = a.ex.ResponseHeaders
	}
	return strings.HasPrefix(strings.ToLower(h.Get("content-type")), "application/x-www-form-urlencoded")
}

// searchFrame searches the data of a frame, and the messages inside its fields.
func (a *auditor) searchFrame(d *decode.Exchange, f *decode.Frame) {
	at := Finding{Place: "frame", Dir: f.Dir, Seq: f.Seq}
	data := f.Data
	if len(data) == 0 {
		// The frame cannot be decompressed.
		data = f.Raw
	}
	a.searchMessage(at, data, f.Tree, a.rules.frameType(d.Call, f.Dir), d.Choices[f.Dir&1], a.isForm(f.Dir))
	for _, in := range f.Inner {
		inner := at
		inner.Path, inner.Encoding = f.Tree.FieldPath(in.Node), in.Encoding
		a.searchMessage(inner, in.Data, in.Tree, a.rules.innerType(d.Call, f.Dir), nil, false)
	}
}

// searchMessage searches one message: its bytes and, if md, its type, is not nil, its fields. at is the finding
// without the secret, choices are the types that users chose for fields, and form means that data is a URL-encoded
// form.
func (a *auditor) searchMessage(at Finding, data []byte, t *wire.Tree, md protoreflect.MessageDescriptor, choices []kind.Choice, form bool) {
	covered := make(map[int]bool)
	for _, v := range a.rules.secretFields(a.red, t, md, choices) {
		f, n := at, t.Node(v.node)
		f.Rule, f.Name, f.Off, f.Len = v.rule, v.field, n.Val, n.End-n.Val
		f.Path = append(append(fieldpath.Path(nil), at.Path...), t.FieldPath(v.node)...)
		covered[n.Val] = true
		a.addFinding(f)
	}
	for _, h := range a.red.Find(data, form, a.ex.URL) {
		if covered[h.Off] {
			// The typed finding is more precise.
			continue
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

// hasRawBodies reports whether an exchange has bytes that are in no frame.
func hasRawBodies(d *decode.Exchange) bool {
	var frames [2]int
	for i := range d.Frames {
		frames[d.Frames[i].Dir]++
	}
	return d.Err != nil || frames[captures.Up] == 0 && d.BytesUp > 0 || frames[captures.Down] == 0 && d.BytesDown > 0
}

// rawBodies returns both bodies of an exchange as recorded.
func rawBodies(ctx context.Context, src captures.ChunkSource, id int64) (raw [2][]byte, err error) {
	for c, err := range src.Chunks(ctx, id, 0) {
		if err != nil {
			return raw, err
		}
		raw[c.Dir] = append(raw[c.Dir], c.Data...)
	}
	return raw, nil
}
