package probe

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"unwire/decode"
	"unwire/replay/outbound"
	"unwire/schema"
	"unwire/schema/jsonname"
)

// A Plan says what a probe would send, before it is known which runtime answers.
type Plan struct {
	V       int        `json:"v"`
	URL     string     `json:"url"`
	Path    string     `json:"path"`
	Numbers []Range    `json:"numbers"`
	Names   int        `json:"names"`
	Asks    []Question `json:"questions,omitempty"` // instead of all numbers at Path
	Budget  int        `json:"budget"`
	Rate    float64    `json:"rate"` // requests a second; 0: no limit
	Live    bool       `json:"live"` // the target is another machine
	Headers []string   `json:"headers"`
	Body    []byte     `json:"body"` // the first
	Steps   []Step     `json:"steps"`
	Effects []string   `json:"effects"` // what could run a handler
}

// A Step is a part of a probe.
type Step struct {
	Runtime  Runtime `json:"runtime"`
	Requests string  `json:"requests"`
	Tells    string  `json:"tells"`
}

// NewPlan says what Run would do, and sends nothing.
//
// Errors: replay.ErrRefused; of options.
func NewPlan(o *Options) (*Plan, error) {
	all := *o
	if err := all.defaults(); err != nil {
		return nil, err
	}
	p := &Plan{
		V: 1, URL: strings.TrimSuffix(all.To.Redacted(), "/") + all.Method, Path: pathText(all.Path), Numbers: all.Numbers,
		Names: len(all.Names), Asks: all.Questions, Budget: all.Budget, Rate: all.Rate, Live: outbound.CheckTarget(all.To, false, nil) != nil,
		Headers: []string{}, Effects: []string{},
	}
	if p.Live && p.Rate <= 0 {
		p.Rate = 1
	}
	for _, h := range all.Header {
		switch {
		case ownHeader(h.Name):
		case h.Secret:
			p.Headers = append(p.Headers, h.Name+": (secret)")
		default:
			p.Headers = append(p.Headers, h.Name+": "+h.Value)
		}
	}
	p.Body = all.firstMessage(nil).firstPayload()
	es := "one a field at most, often one for two; one that nothing is left, one for the type; one more a field of the message's own type, and a group; two a small message with a doubt"
	if all.Refine {
		es += "; one more a field of text or bytes"
	}
	p.Steps = []Step{
		{Unknown, "one to three", "the runtime, the protocol, whether the method exists"},
		{ES1, es, "every field's number and class, repeated numbers, maps, the request's type"},
		{ES2, es, "every field's number and class, repeated numbers, the request's type"},
		{ConnectGo, fmt.Sprintf("about %d a field that shows", bits(count(all.Numbers))-2), "text, messages, repeated numbers; bytes and single numbers never show"},
		{GRPCGo, "the same", "the same"},
	}
	if len(all.Names) > 0 {
		p.Steps = append(p.Steps, Step{Unknown, "one a name that exists, and up to 30", "names and types of the request's fields, in JSON"})
		if len(all.Values) > 0 {
			p.Steps = append(p.Steps, Step{Unknown, "about ten a value that an enum has; one a type of an Any, 200 at most", "names of enums' values in lists (protobuf-es 2) and maps (and protojson), types of an Any"})
		}
		if len(all.Known) == 0 && (!p.Live || all.AllowExecute) {
			p.Effects = append(p.Effects, "on connect-es, if none of the names exists, one request with an empty message runs the handler")
		}
	}
	switch allowed := !p.Live || all.AllowExecute; {
	case all.ClientStreams && !allowed:
		p.Effects = append(p.Effects, "none: the client streams, so that handlers would start, and nothing is sent unless that is allowed (--allow-execute)")
		return p, nil
	case all.ClientStreams:
		p.Effects = append(p.Effects, "the client streams: the handler starts at each request, and gets no message")
		return p, nil
	case allowed:
		p.Effects = append(p.Effects, "the handler of a bidirectional method starts, and gets no message")
	}
	p.Effects = append(p.Effects, "the handler of a client-streaming method starts, and gets no message")
	return p, nil
}

func bits(n int32) (b int) {
	for ; n > 0; n >>= 1 {
		b++
	}
	return b
}

// Text writes the plan for people.
func (p *Plan) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "POST %s\n", p.URL)
	for _, h := range p.Headers {
		fmt.Fprintf(&b, "  %s\n", h)
	}
	of := "the request"
	if p.Path != "" {
		of = "the message at " + p.Path
	}
	about := fmt.Sprintf("numbers %s of %s", rangesText(p.Numbers), of)
	if len(p.Asks) > 0 {
		paths, _ := wants(p.Asks)
		about = fmt.Sprintf("%d questions about %d messages", len(p.Asks), len(paths))
	}
	fmt.Fprintf(&b, "%s, %d names; at most %d requests", about, p.Names, p.Budget)
	if p.Rate > 0 {
		fmt.Fprintf(&b, ", %g a second", p.Rate)
	}
	fmt.Fprintf(&b, "; the first has %d bytes\n", len(p.Body))
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "%s: %s\n  requests: %s\n", s.Runtime, s.Tells, s.Requests)
	}
	for _, e := range p.Effects {
		fmt.Fprintf(&b, "effects: %s\n", e)
	}
	return b.String()
}

// TargetOf is the server that an exchange was captured from.
func TargetOf(ctx context.Context, src decode.Source, id int64) (*url.URL, error) {
	ex, err := decode.Decode(ctx, src, id, decode.Options{})
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(ex.URL)
	if err != nil {
		return nil, fmt.Errorf("probe: exchange %d: %w", id, err)
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}, nil
}

// Words that field names are often made of, beside those of definitions.
var commonNames = [...]string{
	"id", "name", "type", "kind", "value", "key", "data", "text", "content", "message", "messages", "path", "url", "uri", "user", "user_id", "query",
	"limit", "offset", "page_size", "page_token", "cursor", "filter", "order_by", "options", "metadata", "labels", "tags", "status", "state", "code",
	"error", "reason", "version", "token", "request_id", "session_id", "timestamp", "created_at", "updated_at", "start_time", "end_time", "title",
	"description", "size", "count", "index", "parent", "children", "items", "config", "settings", "enabled", "mode", "model", "language", "source",
	"target", "input", "output", "result", "results", "context", "email", "role", "file", "files", "line", "column", "range", "start", "end", "body",
}

// ValuesOf lists the names of all values of the enums of definitions.
func ValuesOf(s *schema.Schema) []string {
	seen := map[string]bool{}
	for e := range s.Enums() {
		for i := range e.Values().Len() {
			seen[string(e.Values().Get(i).Name())] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// TypesOf lists the full names of the messages of definitions.
func TypesOf(s *schema.Schema) []string {
	var out []string
	for m := range s.Messages() {
		if !m.IsMapEntry() {
			out = append(out, string(m.FullName()))
		}
	}
	slices.Sort(out)
	return out
}

// Dictionary lists the names of all fields of definitions, and common ones, in
// both of their forms.
func Dictionary(s *schema.Schema) []string {
	seen := map[string]bool{}
	if s != nil {
		for m := range s.Messages() {
			for i := range m.Fields().Len() {
				f := m.Fields().Get(i)
				seen[string(f.Name())], seen[f.JSONName()] = true, true
			}
		}
	}
	for _, n := range commonNames {
		seen[n], seen[jsonname.Of(n)] = true, true
	}
	var out []string
	for n := range seen {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}
