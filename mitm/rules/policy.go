package rules

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/filter"
	"unwire/mitm/rewrite"
)

// Options are the options of New. The zero value applies the rules only.
type Options struct {
	// Intercept selects frames that are held, in addition to those of rules with the action hold; nil selects none.
	Intercept *filter.Filter

	// Hold waits until somebody decides about a held frame. It returns the messages that are forwarded, or false to
	// forward the frame unchanged. nil means that no frame is held.
	Hold func(ctx context.Context, h Held) (messages [][]byte, changed bool)

	// Hook decides about each frame that HookMatch selects, after the rules were applied; for example, it asks a
	// program of the user. nil means that there is none.
	Hook func(ctx context.Context, h Held) (rewrite.Verdict, error)
	// HookMatch selects the frames for Hook; nil selects all.
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
	// o are the options.
	o Options
	// set is the current set of rules.
	set atomic.Pointer[Set]

	// mu guards used and reported.
	mu sync.Mutex
	// used counts the frames that each rule with a limit was applied to.
	used map[*rule]int
	// reported are the messages that were passed to Options.Report.
	reported map[string]bool
}

// needsTypes reports whether the rules of a Set, Intercept or HookMatch refer to fields by name, and definitions are
// available.
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

// report passes a text to Options.Report, unless it was reported before.
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

// take counts an application of a rule, and reports whether the rule's limit (times) permits it.
func (p *Policy) take(r *rule) bool {
	if r.times == 0 {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used[r]++
	return p.used[r] <= r.times
}

// Maps reports whether Server replaces any server.
func (p *Policy) Maps() bool { return p.set.Load().maps }

// Server returns the URL of the server that replaces the one of a host, or "".
func (p *Policy) Server(scheme, host string) string {
	if r := p.set.Load().server(scheme + "://" + host); r != nil {
		return r.mapTo
	}
	return ""
}

// server returns the first rule with the action map that matches a server's URL, or nil.
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

// MapTargets returns the host names of the servers to which rules with the action map redirect connections.
func (s *Set) MapTargets() (hosts []string) {
	for _, r := range s.rules {
		if u, err := url.Parse(r.mapTo); err == nil && r.mapTo != "" {
			hosts = append(hosts, u.Hostname())
		}
	}
	return hosts
}

// Begin returns the rules that may change an exchange, or nil if none does.
func (p *Policy) Begin(connection *captures.Exchange, q rewrite.Request) rewrite.Exchange {
	s := p.set.Load()
	onlyRules := p.o.Intercept == nil && p.o.Hook == nil && p.o.Pace == nil
	if onlyRules && len(s.rules) == 0 {
		return nil
	}
	key := keyOf(connection, &q)
	call := s.cache.get(key)
	if onlyRules && call != nil && call.matchesNone() {
		return nil
	}

	// The rules that may apply are usually known from an earlier exchange of the call.
	x := &exchange{
		policy: p, connection: connection, request: q, typed: p.needsTypes(s), status: connection.Status, response: connection.ResponseHeaders,
	}
	if call == nil {
		call = s.addCall(key, x.view())
	}
	x.known = call
	x.call.Store(call.call)
	if x.plan = call.plan; x.plan == nil {
		x.plan = call.newPlan(x.view())
	}
	x.addOthers()
	if !x.Changes(captures.Up) && !x.Changes(captures.Down) && p.o.Pace == nil {
		return nil
	}
	return x
}

// others are the conditions under which something other than the rules decides about frames.
type others struct {
	// intercept is the condition of Options.Intercept, by direction.
	intercept [len(directions)]condition
	// hook is the condition of Options.HookMatch, by direction.
	hook [len(directions)]condition
}

// addOthers determines which frames Intercept and HookMatch may select.
func (x *exchange) addOthers() {
	o := x.policy.o
	if (o.Hold == nil || o.Intercept == nil) && o.Hook == nil {
		return
	}
	x.others = &others{}
	for _, d := range directions {
		x.others.intercept[d], x.others.hook[d] = condition{value: filter.No}, condition{value: filter.No}
		if o.Hold != nil && o.Intercept != nil {
			x.others.intercept[d] = conditionOf(o.Intercept, x.view(), d)
		}
		switch {
		case o.Hook == nil:
		case o.HookMatch == nil:
			x.others.hook[d] = condition{value: filter.Yes}
		default:
			x.others.hook[d] = conditionOf(o.HookMatch, x.view(), d)
		}
	}
}

// mayIntercept reports whether Intercept may select frames of a direction.
func (x *exchange) mayIntercept(d captures.Direction) bool {
	return x.others != nil && x.others.intercept[d].value != filter.No
}

// mayHook reports whether the hook may decide about frames of a direction.
func (x *exchange) mayHook(d captures.Direction) bool {
	return x.others != nil && x.others.hook[d].value != filter.No
}

// changesOnlyEnd reports whether the rule does nothing but end the exchange.
func (r *rule) changesOnlyEnd() bool {
	return len(r.edits) == 0 && r.replace == nil && r.duplicate == 0 && !r.hold && r.delay == 0
}

// An exchange applies the rules to one request and its response.
type exchange struct {
	// policy is the policy whose rules apply.
	policy *Policy

	// connection has what all exchanges of the connection have in common.
	connection *captures.Exchange
	// request is the head of the request.
	request rewrite.Request

	// plan lists the rules that may affect the exchange.
	*plan
	// known is what is known about the call that the exchange makes.
	known *knownCall
	// others are the conditions of Options.Intercept and Options.HookMatch; nil if neither is set.
	others *others

	// typed means that filters or edits refer to fields by name, so that the definitions of messages are needed.
	typed bool

	// memories is the memory for the current frame, by direction; nil until a filter must be evaluated.
	memories [len(directions)]*memory

	// mu guards the fields below.
	mu sync.Mutex
	// id is the number of the exchange in the capture; 0 if it is not recorded, or not known yet.
	id int64
	// status and response are the status and the headers of the response; 0 and nil until it has arrived.
	status   int
	response captures.Headers
	// call is the RPC that the exchange calls, whose fields are zero if it is not an RPC. It is nil if it was not
	// determined since the response's head has arrived. It is only written while mu is locked.
	call atomic.Pointer[decode.Call]

	// shown is the exchange and call in the form that filters examine; nil if they have changed since it was made.
	shown *filter.Exchange

	// left means that ClientLeft was called.
	left bool
	// releases release the frame of each direction that is held at the moment; nil if none is.
	releases [len(directions)]context.CancelFunc
}

// recorded returns the exchange as far as it is known. The caller has locked mu, or no other goroutine uses the exchange
// yet.
func (x *exchange) recorded() *captures.Exchange {
	ex, q := *x.connection, x.request
	ex.ID, ex.Method, ex.URL, ex.RequestHeaders, ex.Started = x.id, q.Method, q.URL, q.Header, q.Started
	ex.Status, ex.ResponseHeaders = x.status, x.response
	return &ex
}

// classified returns the RPC that the exchange calls, as far as it is known. The caller has locked mu, or no other
// goroutine uses the exchange yet.
func (x *exchange) classified() *decode.Call {
	c := x.call.Load()
	switch {
	case c != nil:
	case x.known != nil:
		c = x.known.answeredCall(x)
		x.call.Store(c)
	default:
		call := decode.Classify(x.recorded())
		c = &call
		x.call.Store(c)
	}
	return c
}

// callNow is classified for callers that have not locked mu.
func (x *exchange) callNow() *decode.Call {
	if c := x.call.Load(); c != nil {
		return c
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.classified()
}

// view returns the exchange in the form that filters examine. The caller has locked mu, or no other goroutine uses
// the exchange yet.
func (x *exchange) view() *filter.Exchange {
	if x.shown == nil {
		ex := x.recorded()
		x.shown = &filter.Exchange{Exchange: ex, Call: *x.classified(), Missing: filter.Notes | filter.Frames, Now: ex.Started}
	}
	return x.shown
}

// viewNow returns a copy of the exchange in the form that filters examine, with the current time.
func (x *exchange) viewNow() filter.Exchange {
	x.mu.Lock()
	defer x.mu.Unlock()
	v := *x.view()
	v.Now = time.Now()
	return v
}

// Changes reports whether frames of a direction may be changed.
func (x *exchange) Changes(d captures.Direction) bool {
	return len(x.rules[d]) > 0 || x.mayIntercept(d) || x.mayHook(d)
}

// Diverts reports whether frames of a direction may be changed, held or slowed down, or the exchange may be ended.
// Otherwise its bytes may be forwarded as they come.
func (x *exchange) Diverts(d captures.Direction) bool {
	switch {
	case x.Changes(d), x.policy.o.Pace != nil:
		return true
	case d == captures.Up:
		return false
	}
	// What ends a request ends its response.
	return x.mayHook(captures.Up) || x.endsUp
}

// Request returns the verdict before the request is sent: it ends the exchange if a rule can decide that by the
// request's head alone.
func (x *exchange) Request() rewrite.Verdict {
	if x.ending == nil || !x.policy.take(x.ending) {
		return rewrite.Verdict{}
	}
	return x.end(x.ending)
}

// Response stores the status and the headers of the response, which filters may examine.
func (x *exchange) Response(status int, h captures.Headers) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.status, x.response = status, h
	x.shown = nil
	x.call.Store(nil)
}

// Framing returns how the body of a direction is split.
func (x *exchange) Framing(d captures.Direction) rewrite.Framing {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.Changes(d) {
		return rewrite.Framing{Kind: rewrite.Opaque}
	}
	switch {
	case x.connection.Transport == captures.WebSocket || x.isWebSocket():
		return rewrite.Framing{Kind: rewrite.Messages, NoTakeover: x.noTakeover(d)}
	case x.connection.Transport != captures.HTTP || x.changesProtocol():
		return rewrite.Framing{Kind: rewrite.Chunks}
	}

	// The content type of a direction decides how its messages are delimited.
	h := x.request.Header
	if d == captures.Down {
		h = x.response
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

// changesProtocol reports whether the bytes after the heads are of another protocol.
func (x *exchange) changesProtocol() bool {
	ex := captures.Exchange{Method: x.request.Method, RequestHeaders: x.request.Header, Status: x.status, ResponseHeaders: x.response}
	return ex.ChangedProtocol() != ""
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
	return x.request.Method == http.MethodConnect && strings.EqualFold(x.request.Header.Get(":protocol"), "websocket")
}

// noTakeover reports whether the messages of a direction are compressed each by itself.
func (x *exchange) noTakeover(d captures.Direction) bool {
	name := "client_no_context_takeover"
	if d == captures.Down {
		name = "server_no_context_takeover"
	}
	return strings.Contains(strings.ToLower(x.response.Get("sec-websocket-extensions")), name)
}

// Recorded stores the number of the exchange in the capture.
func (x *exchange) Recorded(id int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.id, x.shown = id, nil
}

// Paces reports whether the bandwidth is limited, i.e. whether Pace may wait.
func (x *exchange) Paces() bool { return x.policy.o.Pace != nil }

// Pace waits until n bytes may be forwarded.
func (x *exchange) Pace(ctx context.Context, d captures.Direction, n int) {
	if x.policy.o.Pace != nil && n > 0 {
		x.policy.o.Pace(ctx, d, n)
	}
}

// Passed reports that a body, which rules might have changed, is forwarded unchanged for a reason.
func (x *exchange) Passed(d captures.Direction, reason string) {
	if x.Changes(d) {
		x.policy.report("not changed (" + x.name() + ", " + d.String() + "): " + reason)
	}
}

// name returns the method of the call, or the URL without its query.
func (x *exchange) name() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	if call := x.classified(); call.RPC != "" {
		return call.Service + "/" + call.RPC
	}
	u, _, _ := strings.Cut(x.request.URL, "?")
	return u
}

// ClientLeft releases held frames, and lets no more be held.
func (x *exchange) ClientLeft() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.left = true
	for _, release := range x.releases {
		if release != nil {
			release()
		}
	}
}

// beginHold returns the context for holding a frame of a direction, which ends when the frame must be released, and a
// function to call after that. held is false if the client has left, so that the frame is not held.
func (x *exchange) beginHold(ctx context.Context, d captures.Direction) (hold context.Context, end context.CancelFunc, held bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.left {
		return nil, nil, false
	}
	hold, release := context.WithCancel(ctx)
	x.releases[d] = release
	return hold, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.releases[d] = nil
		release()
	}, true
}

// End does nothing: held frames end with their context.
func (x *exchange) End() {}
