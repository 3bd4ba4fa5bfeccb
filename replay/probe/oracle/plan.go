package oracle

import (
	"fmt"
	"strings"

	"unwire/replay/outbound"
	"unwire/replay/probe"
	"unwire/replay/probe/es"
)

// A Plan describes the requests that a probe would send, before the server's runtime is known.
type Plan struct {
	// URL is the URL to which requests would be sent.
	URL string `json:"url"`
	// Path are the field numbers that lead to the probed message; "" means the request.
	Path string `json:"path"`
	// Numbers are the field numbers to be probed.
	Numbers probe.Numbers `json:"numbers"`
	// Names is the number of candidates for field names.
	Names int `json:"names"`
	// Asks are questions about single fields. If there are any, only these fields are probed, and not
	// all numbers at Path.
	Asks []probe.Question `json:"questions,omitempty"`
	// Budget is the largest number of requests that the probe may send.
	Budget int `json:"budget"`
	// Rate is the largest number of requests per second; 0 means no limit.
	Rate float64 `json:"rate"`
	// Live means that the server is on another machine.
	Live bool `json:"live"`
	// Headers are the headers of every request, without secrets.
	Headers []string `json:"headers"`
	// Body is the body of the first request.
	Body []byte `json:"body"`
	// Steps are the steps of the probe, each with what it reveals.
	Steps []step `json:"steps"`
	// Effects describes which requests could run the RPC handler.
	Effects []string `json:"effects"`

	// messages is the number of messages to be probed.
	messages int
}

// A step is one step of a probe, which may depend on the server's runtime.
type step struct {
	// Runtime is the runtime for which the step is done; "" for any.
	Runtime probe.Runtime `json:"runtime"`

	// Requests describes how many requests the step takes.
	Requests string `json:"requests"`

	// Tells describes what the responses reveal.
	Tells string `json:"tells"`
}

// NewPlan describes the requests that Run would send, and sends nothing.
//
// Errors: outbound.ErrRefused; invalid options.
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

	// The number of requests depends on the runtime, which only the first answer reveals.
	paths, _ := all.Targets()
	p.messages = len(paths)
	p.Body = es.FirstMessage(nil, &all)
	esRequests := "at most 1 per field, often 1 per 2 fields; 1 to check that no field is missing, 1 for the type; 1 more per recursive field and group; 2 per small message that is ambiguous"
	if all.Refine {
		esRequests += "; 1 more per field of text or bytes"
	}
	p.Steps = []step{
		{probe.Unknown, "1 to 3", "the runtime, the protocol, whether the method exists"},
		{probe.ES1, esRequests, "every field's number and class, repeated numbers, maps, the request's type"},
		{probe.ES2, esRequests, "every field's number and class, repeated numbers, the request's type"},
		{probe.ConnectGo, fmt.Sprintf("about %d per field that can be detected", bits(all.Numbers.Count())-2), "text, messages, repeated numbers; bytes and single numbers cannot be detected"},
		{probe.GRPCGo, "the same", "the same"},
	}

	// Names need JSON, whose parsers run the handler if they refuse nothing.
	if len(all.Names) > 0 {
		p.Steps = append(p.Steps, step{probe.Unknown, "1 per name that exists, and up to 30", "names and types of the request's fields, in JSON"})
		if len(all.Values) > 0 {
			p.Steps = append(p.Steps, step{probe.Unknown, "about 10 per value of an enum; 1 per type of an Any, at most 200", "names of enums' values in lists (protobuf-es 2) and maps (and protojson), or of all enums if the parser refuses unknown names (1 request per name, at most 200 per enum); types of an Any"})
		}
		if len(all.Known) == 0 && (!p.Live || all.AllowExecute) {
			p.Effects = append(p.Effects, "on connect-es, if none of the names exists, one request with an empty message runs the handler")
		}
	}

	if !p.Live || all.AllowExecute {
		p.Effects = append(p.Effects, "on connect-go, if no string can end requests, messages that its parser accepts have a deadline that is over: if a proxy drops it, one request runs the handler")
	}
	if !p.Live && all.SingleRequest {
		p.Effects = append(p.Effects, "none: if no string can end requests, connect-go streams and grpc-go get one call without messages, and then calls with a second message, if they refuse both before the handler runs")
	}

	// For streaming methods, the handler starts before the message is parsed.
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

// AddReflection adds a first step, in which the server's reflection is used.
func (p *Plan) AddReflection() {
	p.Steps = append([]step{{probe.Unknown, "1 to 4", "server reflection: if it describes the method, nothing else is sent"}}, p.Steps...)
}

// bits returns the number of binary digits of n.
func bits(n int32) (b int) {
	for ; n > 0; n >>= 1 {
		b++
	}
	return b
}

// Text formats the plan for the user.
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
