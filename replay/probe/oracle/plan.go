package oracle

import (
	"fmt"
	"strings"

	"unwire/replay/outbound"
	"unwire/replay/probe"
	"unwire/replay/probe/es"
)

// A Plan says what a probe would send, before it is known which runtime answers.
type Plan struct {
	URL     string        `json:"url"`
	Path    string        `json:"path"`
	Numbers probe.Numbers `json:"numbers"`
	Names   int           `json:"names"`
	// instead of all numbers at Path
	Asks    []probe.Question `json:"questions,omitempty"`
	Budget  int              `json:"budget"`
	Rate    float64          `json:"rate"` // requests a second; 0: no limit
	Live    bool             `json:"live"` // the target is another machine
	Headers []string         `json:"headers"`
	Body    []byte           `json:"body"` // the first
	Steps   []step           `json:"steps"`
	Effects []string         `json:"effects"` // what could run a handler

	messages int // that are asked about
}

// A step is a part of a probe.
type step struct {
	Runtime  probe.Runtime `json:"runtime"`
	Requests string        `json:"requests"`
	Tells    string        `json:"tells"`
}

// NewPlan says what Run would do, and sends nothing.
//
// Errors: outbound.ErrRefused; of options.
func NewPlan(o *probe.Options) (*Plan, error) {
	all := *o
	headers, err := all.Complete()
	if err != nil {
		return nil, err
	}
	p := &Plan{
		URL: strings.TrimSuffix(all.To.Redacted(), "/") + all.Method, Path: probe.PathText(all.Path), Numbers: all.Numbers,
		Names: len(all.Names), Asks: all.Questions, Budget: all.Budget, Rate: all.Rate, Live: outbound.CheckTarget(all.To, false, nil) != nil,
		Headers: headers, Effects: []string{},
	}
	if p.Live && p.Rate <= 0 {
		p.Rate = 1
	}
	paths, _ := all.Targets()
	p.messages = len(paths)
	p.Body = es.FirstMessage(nil, &all)
	esRequests := "one a field at most, often one for two; one that nothing is left, one for the type; one more a field of the message's own type, and a group; two a small message with a doubt"
	if all.Refine {
		esRequests += "; one more a field of text or bytes"
	}
	p.Steps = []step{
		{probe.Unknown, "one to three", "the runtime, the protocol, whether the method exists"},
		{probe.ES1, esRequests, "every field's number and class, repeated numbers, maps, the request's type"},
		{probe.ES2, esRequests, "every field's number and class, repeated numbers, the request's type"},
		{probe.ConnectGo, fmt.Sprintf("about %d a field that shows", bits(all.Numbers.Count())-2), "text, messages, repeated numbers; bytes and single numbers never show"},
		{probe.GRPCGo, "the same", "the same"},
	}
	if len(all.Names) > 0 {
		p.Steps = append(p.Steps, step{probe.Unknown, "one a name that exists, and up to 30", "names and types of the request's fields, in JSON"})
		if len(all.Values) > 0 {
			p.Steps = append(p.Steps, step{probe.Unknown, "about ten a value that an enum has; one a type of an Any, 200 at most", "names of enums' values in lists (protobuf-es 2) and maps (and protojson), types of an Any"})
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
	about := fmt.Sprintf("numbers %s of %s", p.Numbers, of)
	if len(p.Asks) > 0 {
		about = fmt.Sprintf("%d questions about %d messages", len(p.Asks), p.messages)
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
