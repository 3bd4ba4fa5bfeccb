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
	"unwire/replay/connection"
	"unwire/replay/credential"
	"unwire/replay/live"
	"unwire/replay/outbound"
	"unwire/schema"
)

// Options describe how a request is resolved and sent. With the zero value there are no secrets and no
// schema, and requests are only sent to this machine.
type Options struct {
	// Policy determines which servers may be contacted, and how their certificates are verified.
	outbound.Policy

	// Schema provides names for edits, heartbeats and error details; it may be nil.
	Schema *schema.Schema

	// Credentials supply the secrets that the capture lacks; nil for none.
	Credentials *credential.Credentials

	// OmitSecrets omits headers whose secret is missing. By default, Send fails with ErrCredentials
	// then.
	OmitSecrets bool

	// Lesson describes which values of the response vary even without an edit; see Learn. nil means
	// unknown.
	Lesson *Lesson

	// MaxBytes limits the body of the response, in bytes; the default is 256 MiB.
	MaxBytes int64

	// now replaces time.Now in tests; nil means time.Now.
	now func() time.Time
	// random replaces crypto/rand in tests; nil means crypto/rand.
	random io.Reader
}

// defaultMaxBytes is the default of Options.MaxBytes.
const defaultMaxBytes = 256 << 20

// A Description is a Plan for display: secrets are replaced by references.
type Description struct {
	// Exchange is the number of the captured exchange.
	Exchange int64 `json:"exchange"`
	// Method is the HTTP method of the request.
	Method string `json:"method"`
	// URL is the URL to which the request is sent.
	URL string `json:"url"`
	// HTTP is the HTTP version, "1.1" or "2".
	HTTP string `json:"http"`
	// Protocol is the RPC protocol, such as Connect.
	Protocol decode.Protocol `json:"protocol"`
	// Codec is the encoding of messages, such as "proto" or "json".
	Codec string `json:"codec"`
	// Service is the full name of the called service.
	Service string `json:"service"`
	// RPC is the name of the called method.
	RPC string `json:"rpc"`
	// Headers are the HTTP headers of the request, with placeholders for secrets.
	Headers captures.Headers `json:"headers"`
	// Trailers are the HTTP trailers of the request.
	Trailers captures.Headers `json:"trailers,omitempty"`
	// Refreshed are the headers (in lower case) and the frames ("up/0") in which an outdated id or time
	// was replaced.
	Refreshed []string `json:"refreshed"`
	// Secrets are the secrets that the request needs, without their values.
	Secrets []Secret `json:"secrets"`
	// Edits are descriptions of the applied edits.
	Edits []string `json:"edits"`
	// Frames are the messages of the request, in order.
	Frames []PlanFrame `json:"frames"`
	// Hold means that the client's half of the stream stays open until the server has ended its half,
	// or is silent.
	Hold bool `json:"hold"`
	// Effects describes whether the request may change data on the server: EffectsNone or
	// effectsUnknown.
	Effects string `json:"effects"`
	// Warnings are remarks about the plan for the user.
	Warnings []string `json:"warnings,omitempty"`
	// Refusal is the reason why Send would refuse to send the request; "" if it would not.
	Refusal string `json:"refusal"`
}

// A Plan is a request that is resolved, checked and ready to be sent; it cannot be edited any more.
// Request.Plan returns it, and Send sends it.
type Plan struct {
	// shown is the plan for display, without secrets. It also contains the frames to send.
	shown Description

	// timing has the timeouts, with defaults filled in.
	timing Timing

	// o are the options passed to Request.Plan.
	o Options

	// url is the target URL including secrets.
	url *url.URL
	// headers are the request's headers including secrets.
	headers captures.Headers

	// trailers are the request's trailers including secrets.
	trailers captures.Headers
	// kept are the headers as they are recorded in the output capture: with placeholders instead of
	// secrets.
	kept captures.Headers
	// secrets are the secret values that were inserted into the request.
	secrets []string
	// tags maps the tag of a placeholder, i.e. the digits in "[redacted:3f2a9c1b]", to the secret.
	tags map[string]string

	// captured is the decoded captured exchange, already transcoded if Changes.Codec asks for it.
	captured *decode.Exchange
	// split describes the calls of a split stream, i.e. of one whose frames were sent in separate HTTP
	// calls; nil for an ordinary request.
	split *splitting

	// links relate values in the client's frames to the server's frames that issued them.
	links *live.Links

	// types are the message types of the two directions, indexed by captures.Direction; nil if unknown.
	types [2]protoreflect.MessageDescriptor

	// recoded means that the request was transcoded to another codec than the captured one.
	recoded bool

	// across means that the captured response could not be transcoded, so that responses are compared
	// across codecs.
	across bool

	// whole means that the body has a known length and is sent at once, before any response is read.
	whole bool

	// ending describes how the captured client ended a connection; unused for HTTP requests.
	ending ending
}

// Description describes the request that the plan would send, and its target.
func (p *Plan) Description() Description {
	d := p.shown
	d.Headers, d.Trailers = slices.Clone(d.Headers), slices.Clone(d.Trailers)
	d.Refreshed, d.Secrets, d.Edits = slices.Clone(d.Refreshed), slices.Clone(d.Secrets), slices.Clone(d.Edits)
	d.Frames, d.Warnings = slices.Clone(d.Frames), slices.Clone(d.Warnings)
	return d
}

// The effects that a request may have, according to its HTTP method or the schema's idempotency
// level.
const (
	EffectsNone    = "none"
	effectsUnknown = "unknown"
)

// isLocal reports whether all requests of the plan go to loopback addresses.
func (p *Plan) isLocal() bool {
	return outbound.IsLoopback(strings.ToLower(p.url.Hostname())) && (p.split == nil || p.split.isLocal())
}

// bidirectional reports whether the schema declares the called method as bidirectional streaming.
func (p *Plan) bidirectional() bool {
	if p.o.Schema == nil {
		return false
	}
	m := p.o.Schema.Method(p.shown.Service, p.shown.RPC)
	return m != nil && m.IsStreamingClient() && m.IsStreamingServer()
}

// ready returns an error if the plan must not be sent: a secret is missing or expired, or there is no
// request.
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
		return fmt.Errorf("replay: %w %s", credential.ErrNotRecorded, strings.Join(missing, ", nor "))
	}
	if len(p.captured.RequestHeaders) == 0 && p.shown.Method == "" && !p.overConnection() {
		return errors.New("replay: the exchange has no request")
	}
	return nil
}

// RequestHeaders returns the headers that the plan would send, including secrets; secret marks the
// headers that contain one.
//
// Errors: ErrCredentials if a secret is missing; ErrRefused if the target is not allowed.
func (p *Plan) RequestHeaders() (headers captures.Headers, secret []bool, err error) {
	if p.shown.Refusal != "" {
		return nil, nil, fmt.Errorf("replay: %w: %s", outbound.ErrRefused, p.shown.Refusal)
	}
	if err := p.ready(); err != nil {
		return nil, nil, err
	}
	for i, h := range p.headers {
		secret = append(secret, i >= len(p.shown.Headers) || p.shown.Headers[i].Value != h.Value)
	}
	return p.headers, secret, nil
}

// connectionURL converts the http(s) URL of a request to one with the scheme of the transport: ws(s),
// tcp or tls. It is the inverse of requestURL.
func connectionURL(t captures.Transport, u *url.URL) string {
	if t == captures.HTTP {
		return u.String()
	}
	c := *u
	secure := u.Scheme == "https"
	switch {
	case t == captures.WebSocket && secure:
		c.Scheme = "wss"
	case t == captures.WebSocket:
		c.Scheme = "ws"
	case secure:
		c.Scheme = "tls"
	default:
		c.Scheme = "tcp"
	}
	return c.String()
}

// overConnection reports whether the plan sends messages over a connection (such as a WebSocket)
// instead of an HTTP request.
func (p *Plan) overConnection() bool {
	return p.captured != nil && p.captured.Transport != captures.HTTP
}

// connectionTarget returns the address and the options with which the plan opens its connection. at
// records how far connecting has progressed.
func (p *Plan) connectionTarget(at *outbound.Progress) connection.Target {
	t := connection.Target{
		URL: p.url, Headers: p.headers, Local: p.isLocal(), MaxBytes: p.o.MaxBytes, Progress: at, Policy: p.o.Policy,
		ALPN: p.captured.TLS.ALPN, Compress: strings.Contains(p.captured.ResponseHeaders.Get("sec-websocket-extensions"), "permessage-deflate"),
	}
	// The captured name is that of the captured server.
	if u, err := url.Parse(p.captured.URL); err == nil && u.Host == p.url.Host {
		t.ServerName = p.captured.TLS.ServerName
	}
	return t
}

// transportOf returns the transport of a raw connection to the plan's URL: TLS for https, otherwise
// TCP.
func (p *Plan) transportOf() captures.Transport {
	if p.url.Scheme == "https" {
		return captures.RawTLS
	}
	return captures.RawTCP
}
