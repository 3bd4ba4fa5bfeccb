package replay

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode"
	"unwire/replay/credential"
	"unwire/replay/live"
	"unwire/replay/outbound"
	"unwire/schema"
)

// Options say how a request is resolved and sent. The zero value has no secrets,
// no schema, and sends to this machine alone.
type Options struct {
	outbound.Policy

	// Schema has names for edits, heartbeats and error details; it may be nil.
	Schema *schema.Schema

	// Credentials are the secrets that the capture does not hold; nil is none.
	Credentials *credential.Credentials

	// OmitSecrets leaves out headers whose secret is not given, instead of
	// ErrCredentials.
	OmitSecrets bool

	// Lesson is what is volatile in the answer, learnt from the unedited request; it
	// may be nil.
	Lesson *Lesson

	// MaxBytes bounds the answer's body; the default is 256 MiB.
	MaxBytes int64

	now    func() time.Time // for tests; nil: time.Now
	random io.Reader        // for tests; nil: crypto/rand
}

const defaultMaxBytes = 256 << 20

// A Description is a Plan as it is shown: it holds references to secrets in
// place of them.
type Description struct {
	Exchange int64            `json:"exchange"` // the captured one
	Method   string           `json:"method"`
	URL      string           `json:"url"`
	HTTP     string           `json:"http"` // "1.1" or "2"
	Protocol decode.Protocol  `json:"protocol"`
	Codec    string           `json:"codec"`
	Service  string           `json:"service"`
	RPC      string           `json:"rpc"`
	Headers  captures.Headers `json:"headers"`
	Trailers captures.Headers `json:"trailers,omitempty"`
	// names of headers, and frames, with fresh ids or times
	Refreshed []string    `json:"refreshed"`
	Secrets   []Secret    `json:"secrets"`
	Edits     []string    `json:"edits"`
	Frames    []PlanFrame `json:"frames"`
	// the request stays open until the server has ended or is quiet
	Hold bool `json:"hold"`
	// what the request may do at the other end: EffectsNone, or effectsUnknown
	Effects  string   `json:"effects"`
	Warnings []string `json:"warnings,omitempty"`
	// why Send will not send it; "" if it will
	Refusal string `json:"refusal"`
}

// A Plan is a request as it is sent: resolved, checked, and no longer editable. It
// comes from Request.Plan; Send carries it out.
type Plan struct {
	shown  Description
	timing Timing

	o        Options
	url      *url.URL
	headers  captures.Headers // with the secrets
	trailers captures.Headers
	kept     captures.Headers  // headers with the captured placeholders
	secrets  []string          // values that went in
	tags     map[string]string // secrets by the tag of their placeholder
	captured *decode.Exchange
	// where the request is sent in pieces; nil for one exchange
	split   *splitting
	links   *live.Links
	types   [2]protoreflect.MessageDescriptor
	recoded bool // Codec is not the captured one
	across  bool // and the captured answer is in the captured one
	whole   bool // the body has a known length and goes out at once
}

// Description returns what the plan would send, and to whom.
func (p *Plan) Description() Description {
	d := p.shown
	d.Headers, d.Trailers = slices.Clone(d.Headers), slices.Clone(d.Trailers)
	d.Refreshed, d.Secrets, d.Edits = slices.Clone(d.Refreshed), slices.Clone(d.Secrets), slices.Clone(d.Edits)
	d.Frames, d.Warnings = slices.Clone(d.Frames), slices.Clone(d.Warnings)
	return d
}

// What a request may do at the other end, as far as anything says so: its method
// of HTTP, or the schema's idempotency level.
const (
	EffectsNone    = "none"
	effectsUnknown = "unknown"
)

// isLocal reports whether the request stays on this machine.
func (p *Plan) isLocal() bool {
	return outbound.IsLoopback(strings.ToLower(p.url.Hostname())) && (p.split == nil || p.split.isLocal())
}

// bidirectional reports what a schema knows of the method.
func (p *Plan) bidirectional() bool {
	if p.o.Schema == nil {
		return false
	}
	m := p.o.Schema.Method(p.shown.Service, p.shown.RPC)
	return m != nil && m.IsStreamingClient() && m.IsStreamingServer()
}

// ready says whether the plan may be carried out.
func (p *Plan) ready() error {
	var missing []string
	for _, s := range p.shown.Secrets {
		if s.stale {
			return fmt.Errorf("replay: %w", &expiredError{s, s.past})
		}
		if s.From == "" && !s.Omitted {
			missing = append(missing, s.Where+" (set "+strings.Join(s.Wants, " or ")+")")
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("replay: %w: the capture has no %s", credential.ErrCredentials, strings.Join(missing, ", nor "))
	}
	if len(p.captured.RequestHeaders) == 0 && p.shown.Method == "" {
		return errors.New("replay: the exchange has no request")
	}
	return nil
}

// RequestHeaders are the headers that the plan would send, with its secrets;
// secret tells which of them hold one.
//
// Errors: ErrCredentials where one is missing; ErrRefused.
func (p *Plan) RequestHeaders() (headers captures.Headers, secret []bool, err error) {
	if p.shown.Refusal != "" {
		return nil, nil, fmt.Errorf("replay: %w", errors.Join(outbound.ErrRefused, errors.New(p.shown.Refusal)))
	}
	if err := p.ready(); err != nil {
		return nil, nil, err
	}
	for i, h := range p.headers {
		secret = append(secret, i >= len(p.shown.Headers) || p.shown.Headers[i].Value != h.Value)
	}
	return p.headers, secret, nil
}
