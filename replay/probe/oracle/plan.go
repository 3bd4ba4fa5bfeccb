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
	esRequests := "at most 1 for each field, often 1 for 2 fields; 1 for each recursive field and group; 2 for each small message that is ambiguous; 2 for the request type and a final check"
	if all.Refine {
		esRequests += "; 1 more for each string or bytes field"
	}
	p.Steps = []step{
		{probe.Unknown, "1 to 3", "the server's implementation, the protocol, and whether the method exists"},
		{probe.ES1, esRequests, "the number and wire type of every field, which fields are repeated or maps, and the name of the request type"},
		{probe.ES2, esRequests, "the number and wire type of every field, which numbers are repeated, and the name of the request type"},
		{probe.ConnectGo, fmt.Sprintf("about %d for each field that can be found", bits(all.Numbers.Count())-2), "strings, messages and repeated numbers, but neither bytes nor numbers that are not repeated"},
		{probe.GRPCGo, "the same as for connect-go", "the same as for connect-go"},
	}

	// Names need JSON, whose parsers run the handler if they refuse nothing.
	if len(all.Names) > 0 {
		p.Steps = append(p.Steps, step{probe.Unknown, "1 for each name that exists, and up to 30", "names and types of fields, with JSON requests"})
		if len(all.Values) > 0 {
			p.Steps = append(p.Steps, step{probe.Unknown, "about 10 for each enum value; 1 for each type in an Any field, at most 200", "names of enum values, mostly only of enums in repeated or map fields; types in Any fields"})
		}
		if len(all.Known) == 0 && (!p.Live || all.AllowExecute) {
			p.Effects = append(p.Effects, "if the server is connect-es and none of the names exists, the server executes the method once, with an empty message")
		}
	}

	if !p.Live || all.AllowExecute {
		p.Effects = append(p.Effects, "if the server is connect-go and checks no string field, unwire sends valid messages with an expired deadline; if a proxy removes the deadline, the server executes the method once")
	}
	if !p.Live && all.SingleRequest {
		p.Effects = append(p.Effects, "none; if a Go server checks no string field, unwire sends calls without a message or with two messages, which servers reject before they execute a unary or server-streaming method")
	}

	// For streaming methods, the handler starts before the message is parsed.
	switch allowed := !p.Live || all.AllowExecute; {
	case all.ClientStreams && !allowed:
		p.Effects = append(p.Effects, "none: without --allow-execute, unwire sends no request for this client-streaming method, because each request would start its handler")
		return p, nil
	case all.ClientStreams:
		p.Effects = append(p.Effects, "each request starts the handler of this client-streaming method, which gets no message")
		return p, nil
	case allowed:
		p.Effects = append(p.Effects, "if the method is bidirectional, each request starts its handler, which gets no message")
	}
	p.Effects = append(p.Effects, "if the method is client-streaming, each request starts its handler, which gets no message")
	return p, nil
}

// AddReflection adds a first step, in which the server's reflection is used.
func (p *Plan) AddReflection() {
	p.Steps = append([]step{{probe.Unknown, "1 to 4", "the definition of the method, if the server offers server reflection; probe then sends no other requests"}}, p.Steps...)
}

// counted formats a number of things, such as "1 message" or "2 messages". name is the singular.
func counted(n int, name string) string {
	if n != 1 {
		name += "s"
	}
	return fmt.Sprintf("%d %s", n, name)
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
	about := fmt.Sprintf("probe would try the field numbers %s of %s", p.Numbers, of)
	if len(p.Asks) > 0 {
		about = fmt.Sprintf("probe would test %s in %s", counted(len(p.Asks), "ambiguous field"), counted(p.messages, "message"))
	}
	if p.Names > 0 {
		about += fmt.Sprintf(", and %d names", p.Names)
	}
	fmt.Fprintf(&b, "%s; maximum number of requests: %d", about, p.Budget)
	if p.Rate > 0 {
		fmt.Fprintf(&b, ", %g per second", p.Rate)
	}
	fmt.Fprintf(&b, "; the first request has %d bytes\n", len(p.Body))
	for _, s := range p.Steps {
		server := ""
		if s.Runtime != probe.Unknown {
			server = "if the server is " + string(s.Runtime) + ", "
		}
		fmt.Fprintf(&b, "%sprobe can find: %s\n  number of requests: %s\n", server, s.Tells, s.Requests)
	}
	for _, e := range p.Effects {
		fmt.Fprintf(&b, "possible effect on the server: %s\n", e)
	}
	return b.String()
}
