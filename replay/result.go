package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	// registers google.rpc's error details
	_ "google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/captures"
	"unwire/captures/redact"
	"unwire/decode"
	"unwire/decode/diff"
	"unwire/decode/envelope"
	"unwire/decode/fieldpath"
	"unwire/decode/text"
	"unwire/decode/wire"
	"unwire/replay/edit"
	"unwire/replay/live"
	"unwire/replay/outbound"
)

// A Comparison says how an answer compares with the captured one, or why there is none.
type Comparison string

const (
	// the answer is the captured one, but for volatile values
	Same    Comparison = "same"
	Differs Comparison = "differs" // there is another answer, or a part of one
	// there is an error in place of the captured answer; with origin local, no answer
	Rejected Comparison = "rejected"
	// it was not sent: it may not be sent to this host, or not now
	Refused Comparison = "refused"
	// it was not sent: there was no connection to the server
	NotSent Comparison = "not_sent"
)

// Answered reports whether the answer can be relied on by what is sent after it.
func (v Comparison) Answered() bool { return v == Same || v == Differs }

// An Origin tells whose statement a code and a message are.
type Origin string

const (
	FromServer Origin = "server" // the server said so
	FromLocal  Origin = "local"  // we concluded it
)

// A Result is how a replay went. Secrets do not occur in it.
type Result struct {
	Comparison Comparison `json:"verdict"`
	Origin     Origin     `json:"origin"`
	// "ok", a code's name, or "" where the answer has none
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Reason  outbound.Reason `json:"reason,omitempty"` // why there is no answer
	// of HTTP; 0 without an answer
	Status    int           `json:"status"`
	Details   []Detail      `json:"details,omitempty"`
	Refreshed []string      `json:"refreshed"`
	Diff      []diff.Change `json:"diff"`
	// in the capture of the answer; 0 if there is none
	Exchange int64 `json:"exchange"`
	Sent     int   `json:"frames_up"`
	Received int   `json:"frames_down"`
	// of the frames up, those sent by the clock
	Beats int `json:"heartbeats"`
	// frames up that the server left no time for
	Unsent int `json:"unsent,omitempty"`
	// what we saw on the way, in our words
	Concluded []string `json:"concluded,omitempty"`

	links *live.Links                    // of the captured exchange
	live  *decode.Exchange               // the answer
	down  protoreflect.MessageDescriptor // its type, where a schema knows it

	// takes the request's secrets out of a text; nil: there are none
	clean func(string) string
}

// A Detail is one detail of an error.
type Detail struct {
	Type  string `json:"type"`
	Value []byte `json:"value"`
	// as JSON where the type is known or the server sent it so, else as decode writes it
	Text string `json:"text,omitempty"`
}

// ConnectCode is the number of a rejected replay's code, 1 to 16; 2, unknown,
// for one that no code has, and 0 where nothing was rejected.
func (r *Result) ConnectCode() int {
	if r.Comparison != Rejected {
		return 0
	}
	if n, ok := envelope.CodeNumber(r.Code); ok && n > 0 {
		return n
	}
	n, _ := envelope.CodeNumber("unknown")
	return n
}

// refused is the result of a plan that may not be carried out.
func (p *Plan) refused(err error) *Result {
	return &Result{
		Comparison: Refused, Origin: FromLocal, Message: strings.TrimPrefix(err.Error(), "replay: "),
		Refreshed: []string{}, Diff: []diff.Change{},
	}
}

// judge compares what came with what was captured.
func (p *Plan) judge(ctx context.Context, s *session) (*Result, error) {
	answer, err := decode.Decode(context.WithoutCancel(ctx), s.rec, s.rec.ex.ID, decode.Options{})
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	if answer, err = s.joined(answer); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	r := &Result{
		Origin: FromServer, Code: answer.Code, Message: answer.Message, Status: answer.Status, Details: p.details(answer),
		Refreshed: p.shown.Refreshed, Diff: []diff.Change{}, Exchange: s.rec.id(), Sent: s.sent,
		links: p.links, live: answer, down: p.types[captures.Down],
	}
	for i := range answer.Frames {
		if f := &answer.Frames[i]; f.Dir == captures.Down && live.IsMessage(f) {
			r.Received++
		}
	}
	if p.across && answer.Status != 0 && answer.Code == "ok" {
		if changes := p.acrossCodecs(answer); changes != nil {
			r.Diff = changes
		}
	} else if answer.Status != 0 {
		if changes := diff.Exchanges(p.captured, answer, diff.Options{Answer: true}); changes != nil {
			r.Diff = changes
		}
		p.ignore(r.Diff)
		p.o.Lesson.ignore(r.Diff)
	}
	r.Beats, r.Unsent, r.Concluded = s.beats, s.unsent, s.notes
	if s.unsent > 0 && s.fail == nil {
		r.Concluded = append(r.Concluded, fmt.Sprintf("the server ended before it had asked for everything: %d frames up were not sent", s.unsent))
	}
	if answer.Status == 0 && s.fail != nil && !errors.Is(s.fail, live.ErrSilent) {
		r.unanswered(explain(&s.at, s.fail, p.timing.Timeout), s.fail)
	} else {
		r.conclude(p.captured, answer, s.fail)
	}
	if r.Comparison == Same && s.unsent > 0 {
		r.Comparison = Differs
	}
	if s.turned != nil {
		r.Comparison, r.Origin, r.Reason, r.Code, r.Message = Rejected, FromServer, "", s.turned.code, s.turned.Error()
	}
	r.clean = p.cleaner()
	r.redact(r.clean)
	return r, nil
}

// conclude sets the comparison of the answer with the captured one.
func (r *Result) conclude(was, is *decode.Exchange, fail error) {
	same := is.Status != 0 && diff.Same(r.Diff)
	switch {
	case is.Code != "" && is.Code != "ok":
		if r.Comparison = Rejected; same && is.Code == was.Code {
			r.Comparison = Same
		}
	case fail != nil:
		r.Comparison, r.Origin, r.Code, r.Message = Differs, FromLocal, codeOf(fail), reason(fail)
	case is.Code == "" && was.Code != "":
		r.Comparison, r.Origin, r.Code, r.Message = Differs, FromLocal, "unavailable", "the answer ended without saying how: no end-of-stream, no trailers"
	case same:
		r.Comparison = Same
	default:
		r.Comparison = Differs
		if to := is.ResponseHeaders.Get("location"); is.Status >= 300 && is.Status < 400 {
			r.Message = fmt.Sprintf("%d %s, to %s; redirects are not followed", is.Status, http.StatusText(is.Status), to)
		}
	}
}

// codeOf is the code that a client gives to what went wrong without the server
// saying so.
func codeOf(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, live.ErrSilent):
		return "deadline_exceeded"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, errTooLarge):
		return "resource_exhausted"
	case errors.Is(err, live.ErrUnasked):
		return "aborted"
	case errors.Is(err, outbound.ErrRefused):
		return "permission_denied"
	}
	return "unavailable"
}

// details are those of the answer's error, as text where their type is known.
func (p *Plan) details(ex *decode.Exchange) []Detail {
	e := serverError(ex)
	if e == nil {
		return nil
	}
	var out []Detail
	for _, d := range e.Details {
		out = append(out, Detail{Type: d.Type, Value: d.Value, Text: p.detailText(d)})
	}
	return out
}

func serverError(ex *decode.Exchange) *envelope.Error {
	for i := range ex.Frames {
		if f := &ex.Frames[i]; f.Dir == captures.Down && f.End != nil && f.End.Error != nil {
			return f.End.Error
		}
	}
	for _, h := range []captures.Headers{ex.ResponseTrailers, ex.ResponseHeaders} {
		if end, err := envelope.ParseStatus(h.Get); err == nil && end != nil && end.Error != nil {
			return end.Error
		}
	}
	return nil
}

// detailText renders a detail: by the schema, by what is known of Google's own
// error details, as the server did, or without any schema.
func (p *Plan) detailText(d envelope.Detail) string {
	if m := p.detailMessage(d.Type); m != nil && proto.Unmarshal(d.Value, m) == nil {
		if b, err := protojson.Marshal(m); err == nil {
			return string(b)
		}
	}
	if len(d.Debug) > 0 {
		return string(d.Debug)
	}
	return text.Format(wire.Parse(d.Value, wire.Options{}), nil)
}

func (p *Plan) detailMessage(name string) proto.Message {
	if p.o.Schema != nil {
		if md := p.o.Schema.Message(name); md != nil {
			return dynamicpb.NewMessage(md)
		}
	}
	if t, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name)); err == nil {
		return t.New().Interface()
	}
	return nil
}

// cleaner returns what takes the secrets of the request, and others by their
// shape, out of a text.
func (p *Plan) cleaner() func(string) string {
	known := redact.New(redact.Options{Secrets: p.secrets})
	return func(s string) string {
		s = known.String(s)
		for _, secret := range p.secrets { // a Redactor does not look for short ones
			if len(secret) >= minShortSecret {
				s = strings.ReplaceAll(s, secret, "[redacted]")
			}
		}
		return s
	}
}

// minShortSecret is the length in bytes below which a secret is a word that may
// occur anywhere.
const minShortSecret = 4

// redact takes secrets out of everything that a result says. An answer may
// repeat what it was sent, or hand out new ones.
func (r *Result) redact(clean func(string) string) {
	r.Message = clean(r.Message)
	for i := range r.Concluded {
		r.Concluded[i] = clean(r.Concluded[i])
	}
	for i := range r.Details {
		d := &r.Details[i]
		if c := clean(string(d.Value)); c != string(d.Value) {
			d.Value = []byte(c)
		}
		d.Text = clean(d.Text)
	}
	for i := range r.Diff {
		c := &r.Diff[i]
		c.Old, c.New = redactValue(clean, c.Old), redactValue(clean, c.New)
	}
}

func redactValue(clean func(string) string, v any) any {
	switch v := v.(type) {
	case string:
		return clean(v)
	case []byte:
		return []byte(clean(string(v)))
	case json.RawMessage:
		return json.RawMessage(clean(string(v)))
	case []any:
		for i := range v {
			v[i] = redactValue(clean, v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = redactValue(clean, v[k])
		}
	case []diff.Field:
		for i := range v {
			v[i].Value = redactValue(clean, v[i].Value)
			redactValue(clean, v[i].Fields)
		}
	}
	return v
}

// explain returns why a request got no answer within limit.
func explain(at *outbound.Progress, err error, limit time.Duration) *outbound.Failure {
	if errors.Is(err, errLeft) {
		err = context.Canceled
	}
	return at.Failure(err, limit)
}

// unanswered is the result of a request that got no answer.
func (r *Result) unanswered(f *outbound.Failure, err error) {
	r.Origin, r.Reason, r.Message = FromLocal, f.Reason, f.Message
	switch {
	case f.Refused:
		r.Comparison, r.Code = Refused, ""
	case f.Reason.Unsent():
		r.Comparison, r.Code = NotSent, ""
	default:
		r.Comparison, r.Code = Rejected, codeOf(err)
		return
	}
	r.Sent, r.Beats, r.Unsent, r.Refreshed = 0, 0, 0, []string{}
}

// learnIDs notes in ids which identifiers the server issued in place of those
// of the captured answer.
func (r *Result) learnIDs(ids *live.IDs) {
	if r.live != nil {
		ids.Learn(r.links, r.live)
	}
}

// Values are those at a path of the answer's messages of that frame, or with
// edit.FirstFrame of all of them, and then the first is all of them joined.
func (r *Result) Values(frame int, path fieldpath.Path) (out []string) {
	if r.live == nil {
		return nil
	}
	md := r.down
	for i := range r.live.Frames {
		f := &r.live.Frames[i]
		if f.Dir != captures.Down || !live.IsMessage(f) || frame != edit.FirstFrame && f.Seq != frame {
			continue
		}
		out = append(out, edit.ValuesAt(f.Data, f.Tree, path, md)...)
	}
	if len(out) > 1 && frame == edit.FirstFrame {
		out = append([]string{strings.Join(out, "")}, out...) // deltas are one text
	}
	return out
}

// Clean takes the secrets of the request, and others by their shape, out of a text
// about the answer.
func (r *Result) Clean(text string) string {
	if r.clean == nil {
		return text
	}
	return r.clean(text)
}
