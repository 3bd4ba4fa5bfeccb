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
	"unwire/captures/store"
	"unwire/decode"
	"unwire/decode/diff"
	"unwire/decode/envelope"
	"unwire/decode/fieldpath"
	"unwire/decode/text"
	"unwire/decode/wire"
	"unwire/replay/connection"
	"unwire/replay/edit"
	"unwire/replay/live"
	"unwire/replay/outbound"
)

// A Comparison is the outcome of comparing a response with the captured one, or the reason why they
// were not compared.
type Comparison string

const (
	// Same: the answer equals the captured one, except for volatile values
	Same Comparison = "same"
	// Differs: the answer is different or incomplete
	Differs Comparison = "differs"
	// Rejected: an error instead of the captured answer; with origin local, no answer
	Rejected Comparison = "rejected"
	// Refused: it was not sent, because the host is not allowed, or not at this time
	Refused Comparison = "refused"
	// NotSent: it was not sent, because there was no connection to the server
	NotSent Comparison = "not_sent"
)

// Answered reports whether the server returned a regular response (Same or Differs), so that requests
// that use its ids can follow.
func (v Comparison) Answered() bool { return v == Same || v == Differs }

// An Origin tells whether a status code and message come from the server or from this machine.
type Origin string

const (
	// FromServer: the server sent it
	FromServer Origin = "server"
	// FromLocal: unwire derived it
	FromLocal Origin = "local"
)

// A Result is the outcome of a replay. It contains no secrets.
type Result struct {
	// Comparison is the outcome of comparing the response with the captured one.
	Comparison Comparison `json:"verdict"`
	// Origin tells whether Code and Message come from the server or from this machine.
	Origin Origin `json:"origin"`
	// Code is the RPC status: "ok" or the name of an error code; "" if the response has none.
	Code string `json:"code"`
	// Message is the error message.
	Message string `json:"message"`
	// Reason is the kind of failure for programs, if no response arrived.
	Reason outbound.Reason `json:"reason,omitempty"`
	// Status is the HTTP status; 0 if no response arrived.
	Status int `json:"status"`
	// Details are the details of the error.
	Details []Detail `json:"details,omitempty"`
	// Refreshed are the headers and frames that got fresh ids or times.
	Refreshed []string `json:"refreshed"`
	// Diff lists the differences between the responses, including ignored ones.
	Diff []diff.Change `json:"diff"`
	// Exchange is the number of the recorded exchange in the output capture; 0 if nothing was recorded.
	Exchange int64 `json:"exchange"`
	// Sent is the number of frames that were sent.
	Sent int `json:"frames_up"`
	// Received is the number of messages that were received.
	Received int `json:"frames_down"`
	// Beats is how many of the sent frames were heartbeats, i.e. sent by time and not in response to
	// the server.
	Beats int `json:"heartbeats"`
	// Unsent is the number of frames that were not sent because the server ended the stream before they
	// were due.
	Unsent int `json:"unsent,omitempty"`
	// Stale are values that are out of date because the live server did not issue a replacement. A
	// frame with one is not sent.
	Stale []live.StaleValue `json:"stale,omitempty"`
	// RetryAfter is the time before which the server wants no further request, from its Retry-After; zero
	// if it named none.
	RetryAfter time.Time `json:"retry_after,omitzero"`
	// AsRecorded are short values that an earlier answer, or the same stream, had first in the capture, and
	// that were sent unchanged. It is set only if the answer is not the captured one.
	AsRecorded []live.RecordedValue `json:"sent_as_recorded,omitempty"`
	// Concluded are unwire's remarks on the course of the replay, as text.
	Concluded []string `json:"concluded,omitempty"`

	// links relate values in the client's captured frames to the server's frames that issued them.
	links *live.Links
	// live is the decoded response of the live server.
	live *decode.Exchange
	// down is the type of the response's messages; nil if unknown.
	down protoreflect.MessageDescriptor

	// clean removes the request's secrets from a text; nil if there are none.
	clean func(string) string
}

// A Detail is one detail message of an error.
type Detail struct {
	// Type is the full name of the detail's message type.
	Type string `json:"type"`
	// Value is the encoded detail message.
	Value []byte `json:"value"`
	// Text is JSON if the type is known or the server sent JSON; otherwise it is in decode's text
	// format.
	Text string `json:"text,omitempty"`
}

// ConnectCode returns the number, from 1 to 16, of the error code with which a replay was rejected: 2
// (unknown) for a name that is not defined, and 0 if the replay was not rejected.
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

// refused returns the result of a plan that must not be sent.
func (p *Plan) refused(err error) *Result {
	return &Result{
		Comparison: Refused, Origin: FromLocal, Message: strings.TrimPrefix(err.Error(), "replay: "),
		Refreshed: []string{}, Diff: []diff.Change{},
	}
}

// Outdated returns the result of a request that could not be planned because err says that one of its values
// is outdated: it repeats a value of an earlier answer that the live answer lacks. ok is false for another
// error.
func Outdated(err error) (r *Result, ok bool) {
	if !errors.Is(err, live.ErrUncertain) {
		return nil, false
	}
	return &Result{
		Comparison: Refused, Origin: FromLocal, Code: codeOf(live.ErrUncertain), Message: strings.TrimPrefix(err.Error(), "replay: "),
		Refreshed: []string{}, Diff: []diff.Change{},
	}, true
}

// judge builds the result of a finished session: it compares the recorded response with the captured
// one.
func (p *Plan) judge(ctx context.Context, s *session) (*Result, error) {
	answer, err := decode.Decode(context.WithoutCancel(ctx), s.rec, s.rec.ex.ID, decode.Options{Split: p.captured.Split})
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	answer = p.answerOf(answer)
	if answer, err = s.joined(answer); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}

	// Diff is never nil, since JSON must have an array.
	r := &Result{
		Origin: FromServer, Code: answer.Code, Message: answer.Message, Status: answer.Status, Details: p.details(answer),
		Refreshed: p.shown.Refreshed, Diff: []diff.Change{}, Exchange: s.rec.id(), Sent: s.sent,
		links: p.links, live: answer, down: p.types[captures.Down],
	}

	// Count the messages, then compare: across codecs, or by the structure of both answers.
	for i := range answer.Frames {
		if f := &answer.Frames[i]; f.Dir == captures.Down && live.IsMessage(f) {
			r.Received++
		}
	}

	// An answer in another codec has no comparable structure, so compare by the definitions.
	if p.across && answer.Status != 0 && answer.Code == "ok" {
		if changes := p.acrossCodecs(answer); changes != nil {
			r.Diff = changes
		}
	} else if s.answered(answer) {
		if changes := diff.Exchanges(p.captured, answer, diff.Options{Answer: true}); changes != nil {
			r.Diff = changes
		}
		p.ignore(r.Diff)
		p.o.Lesson.ignore(r.Diff)
	}
	r.Beats, r.Unsent, r.Stale = s.beats, s.unsent, s.stale
	r.RetryAfter = outbound.RetryAfter(answer.ResponseHeaders.Get("retry-after"), time.Now())
	r.Concluded = s.remarks(answer, r.RetryAfter)
	if !s.answered(answer) && s.fail != nil && !errors.Is(s.fail, live.ErrSilent) {
		r.unanswered(explain(&s.at, s.fail, p.timing.Timeout), s.fail)
	} else {
		r.conclude(p.captured, answer, s.answered(answer), s.fail)
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

// remarks returns the remarks on the course of the replay that ended with answer. until is the time before
// which the server wants no further request.
func (s *session) remarks(answer *decode.Exchange, until time.Time) []string {
	list := s.notes
	if s.unsent > 0 && s.fail == nil {
		list = append(list, fmt.Sprintf("the server ended the call before it sent all frames that the client answers, so unwire did not send %d client frames", s.unsent))
	}
	if asked := outbound.AskedToWait(until, time.Now()); asked != "" {
		list = append(list, asked)
	}
	if s.version != "" {
		list = append(list, s.version)
	}
	if decode.AnsweredInGRPC(&answer.Exchange) {
		list = append(list, decode.GRPCInsteadOfConnect)
	}
	return list
}

// conclude sets r.Comparison from r.Diff, the differences between the captured exchange (was) and the
// new one (is), and from how the new one ended. answered means that a response arrived; fail is the
// error of the exchange, if any.
func (r *Result) conclude(was, is *decode.Exchange, answered bool, fail error) {
	same := answered && diff.Same(r.Diff)
	switch {
	case is.Code != "" && is.Code != "ok":
		if r.Comparison = Rejected; same && is.Code == was.Code {
			r.Comparison = Same
		}
	case fail != nil:
		r.Comparison, r.Origin, r.Code, r.Message = Differs, FromLocal, codeOf(fail), reason(fail)
	case is.Code == "" && was.Code != "":
		r.Comparison, r.Origin, r.Code, r.Message = Differs, FromLocal, "unavailable", "the answer has no status: its end-of-stream message or trailers are missing"
	case same:
		r.Comparison = Same
	default:
		r.Comparison = Differs
		if to := is.ResponseHeaders.Get("location"); is.Status >= 300 && is.Status < 400 {
			r.Message = fmt.Sprintf("%d %s, to %s; redirects are not followed", is.Status, http.StatusText(is.Status), to)
		}
	}
}

// codeOf returns the RPC code that a client reports for a failure on its own side, such as
// "deadline_exceeded".
func codeOf(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, live.ErrSilent):
		return "deadline_exceeded"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, errTooLarge):
		return "resource_exhausted"
	case errors.Is(err, live.ErrUnasked), errors.Is(err, live.ErrUncertain):
		return "aborted"
	case errors.Is(err, outbound.ErrRefused):
		return "permission_denied"
	}
	return "unavailable"
}

// details returns the details of the response's error.
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

// serverError returns the RPC error of a response: from its end-of-stream frame, or from its trailers
// or headers. It is nil if the response has none.
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

// detailText formats an error detail for display: as JSON if the schema or Google's error details
// define its type, else in the server's own formatting if it has one, else as schema-less text.
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

// detailMessage returns an empty message of the named type, if the schema or Google's error details
// define it; otherwise nil.
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

// cleaner returns a function that removes secrets from a text: those inserted into the request, and
// those recognised by their format.
func (p *Plan) cleaner() func(string) string {
	known := redact.New(redact.Options{Secrets: p.secrets})
	return func(s string) string {
		s = known.String(s)
		// a Redactor does not look for short ones
		for _, secret := range p.secrets {
			if len(secret) >= minShortSecret {
				s = strings.ReplaceAll(s, secret, "[redacted]")
			}
		}
		return s
	}
}

// minShortSecret is the least length, in bytes, of a secret that is removed from texts. A shorter one
// could be a word that occurs anywhere.
const minShortSecret = 4

// redact removes secrets from all texts of a result, using clean. A response may repeat secrets of the
// request, or contain new ones.
func (r *Result) redact(clean func(string) string) {
	r.Message = clean(r.Message)
	for i := range r.Concluded {
		r.Concluded[i] = clean(r.Concluded[i])
	}
	for i := range r.Stale {
		r.Stale[i].Reason = clean(r.Stale[i].Reason)
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

// redactValue removes secrets from all strings in a value of a difference, which may be nested; it
// returns the new value.
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

// explain returns the reason why a request got no response. at says how far connecting progressed, err
// is the error, and limit the timeout of the exchange.
func explain(at *outbound.Progress, err error, limit time.Duration) *outbound.Failure {
	if errors.Is(err, errLeft) {
		err = context.Canceled
	}
	return at.Failure(err, limit)
}

// unanswered fills in the result for a request that failed with err, explained by f, before a response
// arrived.
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

// NoteAsRecorded adds to the result of exchange id, if the answer is not the captured one, the values that an
// earlier answer or the same stream issued in the capture, and that were sent unchanged because they do not
// look like identifiers. src is the capture.
//
// Limits: those of live.AsRecorded. Errors: those of reading the capture.
func (r *Result) NoteAsRecorded(ctx context.Context, src *store.Store, id int64) (err error) {
	if r.Comparison == Same || r.live == nil || r.links == nil || r.Status == 0 {
		return nil
	}
	if r.AsRecorded, err = live.AsRecorded(ctx, src, id, r.links.Captured(), r.live); err != nil || len(r.AsRecorded) == 0 {
		return err
	}
	var list []string
	for i := range r.AsRecorded {
		v := &r.AsRecorded[i]
		v.Value = r.Clean(v.Value)
		list = append(list, v.String())
	}
	r.Concluded = append(r.Concluded, "unwire sent these values as recorded, although the live server has not issued them: "+strings.Join(list, ", ")+". If the server rejects a value, change it with --set")
	return nil
}

// learnIDs adds the identifiers in the live response to ids, each under the captured identifier that it
// replaces.
func (r *Result) learnIDs(ids *live.IDs) {
	if r.live != nil {
		ids.Learn(r.links, r.live)
	}
}

// Values returns the values at a path in frame number frame of the response. With edit.FirstFrame it
// returns those of all frames; if there are several, they are preceded by all of them joined to one
// text.
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
		// the deltas of a stream are one text
		out = append([]string{strings.Join(out, "")}, out...)
	}
	return out
}

// Clean removes secrets from a text about the response: those of the request, and those recognised by
// their format.
func (r *Result) Clean(text string) string {
	if r.clean == nil {
		return text
	}
	return r.clean(text)
}

// answerOf returns a WebSocket's or raw connection's traffic in the form that is compared with the
// capture: without control frames, and with raw bytes joined turn by turn. An HTTP exchange is returned
// unchanged.
func (p *Plan) answerOf(answer *decode.Exchange) *decode.Exchange {
	if !p.overConnection() || answer.Transport == captures.HTTP {
		return answer
	}
	c := *answer
	c.Frames = withoutControl(c.Frames)
	if connection.IsRaw(&c) {
		return connection.Turns(&c)
	}
	return &c
}
