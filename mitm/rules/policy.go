package rules

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/filter"
	"unwire/decode/wire"
	"unwire/mitm/rewrite"
)

// Options are the options of New. The zero value applies the rules only.
type Options struct {
	// Intercept selects further frames that are held, as by a rule named "intercept".
	Intercept *filter.Filter

	// Hold waits until somebody decides about a held frame. It returns the messages that are forwarded, or false to
	// forward the frame unchanged. nil means that no frame is held.
	Hold func(ctx context.Context, h Held) (messages [][]byte, changed bool)

	// Hook decides about each frame that HookMatch selects, after the rules. nil means that there is none.
	Hook      func(ctx context.Context, h Held) (rewrite.Verdict, error)
	HookMatch *filter.Filter

	// Pace waits until n bytes of a direction may be forwarded. nil forwards at once.
	Pace func(ctx context.Context, d captures.Direction, n int)

	// Type returns the type of the messages of a method ("/package.Service/Method"), or nil. With it, paths may have
	// the names of fields.
	Type func(method string, d captures.Direction) protoreflect.MessageDescriptor

	// Report receives what a person should know: a rule that failed, once for each rule.
	Report func(text string)
}

// A Held is a frame that waits for a decision.
type Held struct {
	// Exchange is the exchange of the frame.
	Exchange *captures.Exchange

	// Call is the method that the exchange calls; it is zero if the exchange is not a call.
	Call decode.Call

	// Frame is the frame as it was received.
	Frame *rewrite.Frame

	// Data is the message as the rules before have left it.
	Data []byte

	// JSON means that the message is JSON text.
	JSON bool

	// Rule is the name of the rule that holds it.
	Rule string
}

// A Policy applies the rules of a Set to exchanges. It is safe for concurrent use.
type Policy struct {
	o   Options
	set atomic.Pointer[Set]

	mu sync.Mutex
	// used counts the frames that a rule has changed, reported the failures that were reported.
	used     map[*rule]int
	reported map[string]bool
}

// needsTypes reports whether the rules of a Set, or what selects further frames, depend on the types of messages.
func (p *Policy) needsTypes(s *Set) bool {
	if p.o.Type == nil {
		return false
	}
	for _, f := range []*filter.Filter{p.o.Intercept, p.o.HookMatch} {
		if f != nil && f.Needs()&filter.Types != 0 {
			return true
		}
	}
	return s.hasNames
}

// New returns a Policy for the rules of a Set, which may be nil.
func New(s *Set, o Options) *Policy {
	p := &Policy{o: o}
	p.Replace(s)
	return p
}

// Replace makes the rules of another Set apply to exchanges that begin from now on.
func (p *Policy) Replace(s *Set) {
	if s == nil {
		s = &Set{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used, p.reported = make(map[*rule]int), make(map[string]bool)
	p.set.Store(s)
}

// report reports a text once.
func (p *Policy) report(text string) {
	p.mu.Lock()
	known := p.reported[text]
	// What was reported must not fill the memory.
	if len(p.reported) < 10_000 {
		p.reported[text] = true
	}
	p.mu.Unlock()
	if !known && p.o.Report != nil {
		p.o.Report(text)
	}
}

// take reports whether a rule may change another frame.
func (p *Policy) take(r *rule) bool {
	if r.times == 0 {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used[r]++
	return p.used[r] <= r.times
}

// Server returns the URL of the server that replaces the one of a host, or "".
func (p *Policy) Server(scheme, host string) string {
	if r := p.set.Load().server(scheme + "://" + host); r != nil {
		return r.mapTo
	}
	return ""
}

// server returns the first rule that maps a server, or nil.
func (s *Set) server(serverURL string) *rule {
	for _, r := range s.rules {
		if r.mapTo == "" {
			continue
		}
		x := &filter.Exchange{Exchange: &captures.Exchange{URL: serverURL + "/"}, Now: time.Now()}
		if r.match.Exchange(x) == filter.Yes {
			return r
		}
	}
	return nil
}

// MapTargets returns the hosts to which rules map others.
func (s *Set) MapTargets() (hosts []string) {
	for _, r := range s.rules {
		if u, err := url.Parse(r.mapTo); err == nil && r.mapTo != "" {
			hosts = append(hosts, u.Hostname())
		}
	}
	return hosts
}

// Begin returns the rules that may change an exchange, or nil if none does.
func (p *Policy) Begin(ex *captures.Exchange) rewrite.Exchange {
	s := p.set.Load()
	onlyRules := p.o.Intercept == nil && p.o.Hook == nil && p.o.Pace == nil
	if onlyRules && (len(s.rules) == 0 || s.matchesNone(ex)) {
		return nil
	}
	x := &exchange{policy: p, ex: *ex, typed: p.needsTypes(s)}
	x.call = decode.Classify(ex)
	view := x.view()
	x.plan = s.planFor(view)
	x.addOthers(view)
	if !x.Changes(captures.Up) && !x.Changes(captures.Down) && p.o.Pace == nil {
		return nil
	}
	return x
}

// addOthers adds what changes the exchange in addition to rules.
func (x *exchange) addOthers(view *filter.Exchange) {
	o := x.policy.o
	for _, d := range directions {
		x.intercept[d], x.hook[d] = condition{value: filter.No}, condition{value: filter.No}
		if o.Hold != nil {
			x.intercept[d] = conditionOf(o.Intercept, view, d)
		}
		switch {
		case o.Hook == nil:
		case o.HookMatch == nil:
			x.hook[d] = condition{value: filter.Yes}
		default:
			x.hook[d] = conditionOf(o.HookMatch, view, d)
		}
	}
}

// changesOnlyEnd reports whether the rule does nothing but end the exchange.
func (r *rule) changesOnlyEnd() bool {
	return len(r.edits) == 0 && r.replace == nil && r.duplicate == 0 && !r.hold && r.delay == 0
}

// An exchange is one to which rules apply.
type exchange struct {
	policy *Policy

	// plan is what the rules may do. intercept and hook select frames in addition, by direction.
	*plan
	intercept, hook [len(directions)]condition

	// typed means that the types of messages are needed.
	typed bool

	// changes, frames and trees are the memory for the current frame of each direction, which one goroutine examines.
	changes [len(directions)]change
	frames  [len(directions)]decode.Frame
	trees   [len(directions)]wire.Tree

	mu   sync.Mutex
	ex   captures.Exchange
	call decode.Call

	// shown is what filters examine, until ex or call change.
	shown *filter.Exchange
}

// view returns what filters examine. The caller has locked mu, or is alone.
func (x *exchange) view() *filter.Exchange {
	if x.shown == nil {
		ex := x.ex
		x.shown = &filter.Exchange{Exchange: &ex, Call: x.call, Missing: filter.Notes | filter.Frames, Now: ex.Started}
	}
	return x.shown
}

// viewNow returns what filters examine at the moment.
func (x *exchange) viewNow() filter.Exchange {
	x.mu.Lock()
	defer x.mu.Unlock()
	v := *x.view()
	v.Now = time.Now()
	return v
}

// Changes reports whether frames of a direction may be changed.
func (x *exchange) Changes(d captures.Direction) bool {
	return len(x.rules[d]) > 0 || x.intercept[d].value != filter.No || x.hook[d].value != filter.No
}

// Diverts reports whether anything may happen to a direction.
func (x *exchange) Diverts(d captures.Direction) bool {
	switch {
	case x.Changes(d), x.policy.o.Pace != nil:
		return true
	case d == captures.Up:
		return false
	}
	// What ends a request ends its response.
	return x.hook[captures.Up].value != filter.No || slices.ContainsFunc(x.rules[captures.Up], func(r frameRule) bool { return r.rule.endsAtHead() })
}

// Request ends the exchange if a rule needs only the head for that.
func (x *exchange) Request(context.Context) rewrite.Verdict {
	if x.ending == nil || !x.policy.take(x.ending) {
		return rewrite.Verdict{}
	}
	return x.end(x.ending)
}

// Response notes the head of the response.
func (x *exchange) Response(status int, h captures.Headers) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ex.Status, x.ex.ResponseHeaders = status, h
	x.call, x.shown = decode.Classify(&x.ex), nil
}

// Framing returns how the body of a direction is split.
func (x *exchange) Framing(d captures.Direction) rewrite.Framing {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.Changes(d) {
		return rewrite.Framing{Kind: rewrite.Opaque}
	}
	switch {
	case x.ex.Transport == captures.WebSocket || x.isWebSocket():
		return rewrite.Framing{Kind: rewrite.Messages, NoTakeover: x.noTakeover(d)}
	case x.ex.Transport != captures.HTTP || x.ex.ChangedProtocol() != "":
		return rewrite.Framing{Kind: rewrite.Chunks}
	}

	// The content type of a direction decides how its messages are delimited.
	h := x.ex.RequestHeaders
	if d == captures.Down {
		h = x.ex.ResponseHeaders
	}
	media, _, _ := strings.Cut(h.Get("content-type"), ";")
	media = strings.ToLower(strings.TrimSpace(media))
	switch {
	case strings.HasPrefix(media, "application/connect+"):
		return rewrite.Framing{Kind: rewrite.Envelopes, Encoding: h.Get("connect-content-encoding")}
	case strings.HasPrefix(media, "application/grpc-web-text"):
		return rewrite.Framing{Kind: rewrite.Envelopes, Encoding: h.Get("grpc-encoding"), Base64: true}
	case strings.HasPrefix(media, "application/grpc"):
		return rewrite.Framing{Kind: rewrite.Envelopes, Encoding: h.Get("grpc-encoding")}
	case media == "text/event-stream":
		return rewrite.Framing{Kind: rewrite.Events, Encoding: h.Get("content-encoding")}
	}
	if h.Get("content-length") == "" && !isDocument(media) {
		// It may be a stream whose parts the other side waits for.
		return rewrite.Framing{Kind: rewrite.Opaque}
	}
	return rewrite.Framing{Kind: rewrite.Whole, Encoding: h.Get("content-encoding")}
}

// isDocument reports whether a body of a media type is a single document, even if its length is not declared.
func isDocument(media string) bool {
	switch media {
	case "application/json", "application/proto", "application/protobuf", "application/x-protobuf", "application/xml",
		"application/x-www-form-urlencoded", "application/graphql", "text/html", "text/xml":
		return true
	}
	return strings.HasSuffix(media, "+json") || strings.HasSuffix(media, "+xml") || strings.HasSuffix(media, "+proto")
}

// isWebSocket reports whether the exchange is the handshake of a WebSocket in a stream of HTTP/2, whose body
// consists of messages.
//
// Source: RFC 8441
func (x *exchange) isWebSocket() bool {
	return x.ex.Method == http.MethodConnect && strings.EqualFold(x.ex.RequestHeaders.Get(":protocol"), "websocket")
}

// noTakeover reports whether the messages of a direction are compressed each by itself.
func (x *exchange) noTakeover(d captures.Direction) bool {
	name := "client_no_context_takeover"
	if d == captures.Down {
		name = "server_no_context_takeover"
	}
	return strings.Contains(strings.ToLower(x.ex.ResponseHeaders.Get("sec-websocket-extensions")), name)
}

// Recorded notes the number of the exchange in the capture.
func (x *exchange) Recorded(id int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ex.ID, x.shown = id, nil
}

// Paces reports whether the bandwidth is limited.
func (x *exchange) Paces() bool { return x.policy.o.Pace != nil }

// Pace waits until n bytes may be forwarded.
func (x *exchange) Pace(ctx context.Context, d captures.Direction, n int) {
	if x.policy.o.Pace != nil && n > 0 {
		x.policy.o.Pace(ctx, d, n)
	}
}

// Passed reports a body that cannot be changed.
func (x *exchange) Passed(d captures.Direction, reason string) {
	if x.Changes(d) {
		x.policy.report("not changed (" + x.name() + ", " + d.String() + "): " + reason)
	}
}

// name returns the method of the call, or the URL without its query.
func (x *exchange) name() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.call.RPC != "" {
		return x.call.Service + "/" + x.call.RPC
	}
	u, _, _ := strings.Cut(x.ex.URL, "?")
	return u
}

// End does nothing: held frames end with their context.
func (x *exchange) End() {}
