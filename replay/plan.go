package replay

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/replay/edit"
	"unwire/schema"
)

// Options says what to replay where. The zero value sends the captured request
// to the captured host if that is this machine.
type Options struct {
	// scheme, host and port to send to, and what its path has is put before the captured one; nil: where it was captured
	To         *url.URL
	Live       bool     // hosts other than this machine may be sent to
	AllowHosts []string // which; see CheckTarget

	Part  bool // of a conversation in pieces send this exchange alone
	Edits []edit.Edit
	// CodecJSON or CodecProto, to have the request sent in; "": as captured
	Codec string
	// what to send in place of each message with Codec; nil: the message
	Message []byte
	// has someone edit a message as text, after Edits; nil: nobody
	Editor func(name string, text []byte) ([]byte, error)
	// which one: see Edit.Frame; FirstFrame for the first
	EditFrame int
	// for names in edits, heartbeats and error details; may be nil
	Schema *schema.Schema
	// secrets that the capture does not hold; nil: none
	Credentials *Credentials
	// leave out headers whose secret is not given, instead of ErrCredentials
	OmitSecrets bool

	// makes values of headers, by name in lower case; nil: DefaultHeaders
	Headers map[string]HeaderMaker

	// what the server has issued in calls that were sent before this one; may be nil
	Issued *Issued
	// what is volatile in the answer, learnt from the unedited request; may be nil
	Lesson *Lesson
	Pace   *Pace // how gently other hosts are asked; may be nil

	// who may have signed the server's certificate; nil: the system's
	Roots    *x509.CertPool
	Insecure bool // the server's certificate is not verified
	// for all of it; default 60 s, and deadlines in headers stay as captured
	Timeout time.Duration
	// for the server's frame that a frame up answers; default 10 s
	Wait time.Duration
	// of the server, after which one that sends other frames than captured has had its turn; default 300 ms
	Quiet    time.Duration
	MaxBytes int64 // of the answer's body; default 256 MiB

	dial   dialFunc         // for tests; nil: a net.Dialer
	now    func() time.Time // for tests; nil: time.Now
	random io.Reader        // for tests; nil: crypto/rand
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

const (
	defaultTimeout  = 60 * time.Second
	defaultWait     = 10 * time.Second
	defaultQuiet    = 300 * time.Millisecond
	defaultMaxBytes = 256 << 20
)

func (o *Options) defaults() {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.Wait <= 0 {
		o.Wait = defaultWait
	}
	if o.Quiet <= 0 {
		o.Quiet = defaultQuiet
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultMaxBytes
	}
}

// A Plan is a request as it would be sent. It can be carried out by Send, or
// shown: it holds references to secrets in place of them.
type Plan struct {
	V        int              `json:"v"`
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
	// what the request may do at the other end: EffectsNone, or EffectsUnknown
	Effects  string   `json:"effects"`
	Warnings []string `json:"warnings,omitempty"`
	// why Send will not send it; "" if it will
	Refusal string `json:"refusal"`

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
	linker  *linker
	answers int           // messages of the captured answer, heartbeats left out
	beats   time.Duration // between the client's heartbeats
	types   [2]protoreflect.MessageDescriptor
	recoded bool // Codec is not the captured one
	// headers with values that Options.Issued has, by name in lower case
	live   []string
	across bool // and the captured answer is in the captured one
	whole  bool // the body has a known length and goes out at once
}

// What a request may do at the other end, as far as anything says so: its method
// of HTTP, or the schema's idempotency level.
const (
	EffectsNone    = "none"
	EffectsUnknown = "unknown"
)

// effects is what a request may do.
func (p *Plan) effects() string {
	if p.Method == http.MethodGet || p.Method == http.MethodHead {
		return EffectsNone
	}
	if p.o.Schema != nil {
		if m := p.o.Schema.Method(p.Service, p.RPC); m != nil {
			if o, ok := m.Options().(*descriptorpb.MethodOptions); ok && o.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS {
				return EffectsNone
			}
		}
	}
	return EffectsUnknown
}

// refuseForeign refuses to take secrets to a host that they are not of. What was
// captured in front of this machine, as a reverse proxy does, does not tell whose
// they are.
func (p *Plan) refuseForeign() {
	captured, err := url.Parse(p.captured.URL)
	if err != nil || p.isLocal() || p.Refusal != "" || isLoopbackName(captured.Hostname()) || strings.EqualFold(captured.Hostname(), p.url.Hostname()) {
		return
	}
	where := ""
	for _, s := range p.Secrets {
		if !s.Omitted {
			where = s.Where
		}
	}
	for _, h := range p.headers {
		if name := strings.ToLower(h.Name); name == "authorization" || name == "cookie" {
			where = "header " + name
		}
	}
	if where != "" {
		p.Refusal = fmt.Sprintf("refused: the secret in %s is of %s, and is not sent to %s", where, captured.Hostname(), p.url.Hostname())
	}
}

// NewPlan reads exchange id of src and plans to send its request again.
//
// Shape: a target that may not be sent to, and secrets that are missing, are
// told in the plan, and are errors of Send.
// Errors: of reading the exchange; of an edit, with its place.
func NewPlan(ctx context.Context, src decode.Source, id int64, o Options) (*Plan, error) {
	chosen := o.Timeout // by the caller: deadlines in headers follow it
	if chosen == defaultTimeout {
		chosen = 0
	}
	o.defaults()
	ex, body, pieces, err := read(ctx, src, id, o.Part)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	p := &Plan{
		V: 1, Exchange: id, Method: ex.Method, HTTP: ex.HTTP, Protocol: ex.Protocol, Codec: ex.Codec,
		Service: ex.Service, RPC: ex.RPC, Refreshed: []string{}, Secrets: []Secret{}, Edits: []string{}, Frames: []PlanFrame{},
		o: o, captured: ex, tags: map[string]string{},
	}
	if o.Schema != nil {
		p.types[captures.Up] = o.Schema.FrameType(ex.Call, captures.Up)
		p.types[captures.Down] = o.Schema.FrameType(ex.Call, captures.Down)
	}
	if o.Codec != "" && pieces != nil {
		return nil, fmt.Errorf("replay: exchange %d: a conversation in pieces is sent in the codec that it was captured in", id)
	}
	var live map[int]bool
	p.captured, p.live, live = o.Issued.into(ex)
	for _, name := range p.live {
		p.refreshed(name)
	}
	if body, err = p.recode(body); err != nil {
		return nil, fmt.Errorf("replay: exchange %d: %w", id, err)
	}
	if err := p.target(); err != nil {
		return nil, err
	}
	if o.Insecure && p.url.Scheme == "https" {
		p.Warnings = append(p.Warnings, "the server's certificate is not verified: whoever answers gets the secrets of the request")
	}
	p.o.Credentials = o.Credentials.forHost(p.url.Hostname())
	now := time.Now()
	if o.now != nil {
		now = o.now()
	}
	p.checkVersion(now)
	r := newRefresher(now, ex.Started, chosen)
	if o.random != nil {
		r.random = o.random
	}
	var made error
	r.make = p.maker(ctx, now, &made)
	p.buildHeaders(r)
	if pieces != nil {
		if err := p.buildSplit(ctx, src, pieces, r); err != nil {
			return nil, fmt.Errorf("replay: exchange %d: %w", id, err)
		}
	}
	if err := p.finishURL(); err != nil {
		return nil, err
	}
	if made != nil {
		return nil, fmt.Errorf("replay: exchange %d: %w", id, made)
	}
	p.buildFrames(body)
	for i := range p.Frames {
		if f := &p.Frames[i]; live[f.Seq] {
			f.fresh = true
			p.refreshed(fmt.Sprintf("%s/%d", captures.Up, f.Seq))
		}
	}
	if err := p.edit(); err != nil {
		return nil, err
	}
	p.refreshBodies(r)
	p.checkBodies()
	p.Effects = p.effects()
	p.refuseForeign()
	if err := p.finish(); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	return p, nil
}

// read reads the exchange, or the conversation in pieces that goes by it, and
// the body of the request.
func read(ctx context.Context, src decode.Source, id int64, part bool) (*decode.Exchange, []byte, *conversation.Conversation, error) {
	if !part {
		c, err := conversation.Decode(ctx, src, id, decode.Options{})
		if err != nil {
			return nil, nil, nil, err
		}
		if c != nil {
			return c.Exchange, nil, c, nil
		}
	}
	ex, err := decode.Decode(ctx, src, id, decode.Options{})
	if err != nil {
		return nil, nil, nil, err
	}
	body, err := upBody(ctx, src, id)
	return ex, body, nil, err
}

// upBody reads the request's body as it was on the wire.
func upBody(ctx context.Context, src decode.Source, id int64) ([]byte, error) {
	var body []byte
	for c, err := range src.Chunks(ctx, id, 0) {
		if err != nil {
			return nil, err
		}
		if c.Dir == captures.Up {
			body = append(body, c.Data...)
		}
	}
	return body, nil
}

// target decides where the request goes and whether it may.
func (p *Plan) target() error {
	u, err := p.targetOf(p.captured.URL)
	if err != nil {
		return fmt.Errorf("replay: exchange %d: %w", p.Exchange, err)
	}
	p.url, p.URL = u, u.String()
	return nil
}

// targetOf is where a captured URL's request goes; one that may not be sent to
// is told in the plan.
func (p *Plan) targetOf(captured string) (*url.URL, error) {
	u, err := url.Parse(captured)
	if err != nil {
		return nil, err
	}
	if to := p.o.To; to != nil {
		u.Scheme, u.Host = to.Scheme, to.Host
		if prefix := strings.TrimSuffix(to.Path, "/"); prefix != "" {
			u.Path, u.RawPath = prefix+u.Path, ""
		}
	}
	// neither is in the request; the authorization header has its own say
	u.User, u.Fragment = nil, ""
	if err := CheckTarget(u, p.o.Live, p.o.AllowHosts); err != nil {
		p.Refusal = strings.TrimPrefix(err.Error(), "replay: ")
	}
	return u, nil
}

// finishURL puts the secrets into the URL, some of which headers may have told.
func (p *Plan) finishURL() (err error) {
	if p.url, err = p.fillURL(p.url); err != nil {
		return fmt.Errorf("replay: exchange %d: %w", p.Exchange, err)
	}
	return nil
}

// isLocal reports whether the request stays on this machine.
func (p *Plan) isLocal() bool {
	return isLoopbackName(strings.ToLower(p.url.Hostname())) && (p.split == nil || p.split.isLocal())
}

// finish settles what depends on all of the plan.
func (p *Plan) finish() error {
	if p.Protocol == decode.ConnectGet {
		if err := p.finishGet(); err != nil {
			return err
		}
	}
	if p.split != nil {
		p.whole = true // each piece is
		return p.number()
	}
	linked := false
	for i := range p.Frames {
		linked = linked || p.Frames[i].cause != nil || len(p.Frames[i].Live) > 0
	}
	p.whole = !linked && (len(p.Frames) == 0 || !p.Frames[0].framed || p.captured.RequestHeaders.Get("content-length") != "")
	p.Hold = !p.whole && (linked || p.bidirectional())
	return nil
}

// bidirectional reports what a schema knows of the method.
func (p *Plan) bidirectional() bool {
	if p.o.Schema == nil {
		return false
	}
	m := p.o.Schema.Method(p.Service, p.RPC)
	return m != nil && m.IsStreamingClient() && m.IsStreamingServer()
}

// finishGet puts the one message of a Connect GET into the query, where every
// other parameter keeps its place and its spelling.
func (p *Plan) finishGet() error {
	if len(p.Frames) != 1 || !p.Frames[0].changed() && !p.recoded && !inBody.Match(p.Frames[0].Data) {
		return nil
	}
	f := &p.Frames[0]
	shown, err := p.query(f, f.Data)
	if err != nil {
		return err
	}
	data, _, err := p.unredact(f.Data)
	if err != nil {
		return err
	}
	sent, err := p.query(f, data)
	if err != nil {
		return err
	}
	u := *p.url
	u.RawQuery = shown
	p.URL, p.url.RawQuery = u.String(), sent
	return nil
}

// query is the target's query with another message.
func (p *Plan) query(f *PlanFrame, data []byte) (string, error) {
	raw, err := f.payload(data)
	if err != nil {
		return "", err
	}
	value := url.QueryEscape(string(raw))
	if p.url.Query().Get("base64") == "1" {
		value = base64.RawURLEncoding.EncodeToString(raw)
	}
	parts := strings.Split(p.url.RawQuery, "&")
	for i, part := range parts {
		if name, _, _ := strings.Cut(part, "="); name == "message" {
			parts[i] = "message=" + value
		}
	}
	return strings.Join(parts, "&"), nil
}

// ready says whether the plan may be carried out.
func (p *Plan) ready() error {
	var missing []string
	for _, s := range p.Secrets {
		if s.stale {
			return fmt.Errorf("replay: %w", &expiredError{s, s.past})
		}
		if s.From == "" && !s.Omitted {
			missing = append(missing, s.Where+" (set "+strings.Join(s.Wants, " or ")+")")
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("replay: %w: the capture has no %s", ErrCredentials, strings.Join(missing, ", nor "))
	}
	if len(p.captured.RequestHeaders) == 0 && p.Method == "" {
		return errors.New("replay: the exchange has no request")
	}
	return nil
}
