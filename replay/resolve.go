package replay

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/captures"
	"unwire/decode"
	"unwire/replay/credential"
	"unwire/replay/outbound"
)

// Plan resolves the request: it transcodes it, inserts ids of the live server, edits and secrets, and
// determines where each frame is sent and which server frame it waits for. It sends nothing.
//
// Shape: a target that is not allowed, and missing secrets, are reported in the plan, and are errors of
// Send.
// Errors: those of an edit, with its position.
func (r *Request) Plan(ctx context.Context, o Options) (*Plan, error) {
	p, err := newPlanner(r, o)
	if err != nil {
		return nil, err
	}

	// What was captured, in the codec that is asked for, and where it goes.
	if p.body, err = p.recode(r.body); err != nil {
		return nil, fmt.Errorf("replay: exchange %d: %w", r.id, err)
	}
	if err := p.target(); err != nil {
		return nil, err
	}
	p.o.Credentials = o.Credentials.ForHost(p.url.Hostname())

	// The headers come first: identifiers and secrets that occur in messages, too,
	// are known by them.
	fresh, failed := p.refresher(ctx)
	p.buildHeaders(fresh)
	if r.conversation != nil {
		if err := p.buildSplit(fresh); err != nil {
			return nil, fmt.Errorf("replay: exchange %d: %w", r.id, err)
		}
	}
	if err := p.finishURL(); err != nil {
		return nil, err
	}
	if *failed != nil {
		return nil, fmt.Errorf("replay: exchange %d: %w", r.id, *failed)
	}

	// Then the frames, edited.
	if err := p.buildFrames(p.body); err != nil {
		return nil, err
	}
	p.markLive()
	if err := p.edit(); err != nil {
		return nil, err
	}
	if err := p.checkLost(); err != nil {
		return nil, err
	}
	p.refreshBodies(fresh)
	p.checkBodies()

	// Last what depends on all of it.
	p.shown.Effects = p.effects()
	p.refuseForeign()
	if err := p.finish(); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	return p.Plan, nil
}

// refresher returns the refresher that replaces outdated values in headers and computes headers. The
// first error of computing one is stored in failed.
func (p *planner) refresher(ctx context.Context) (r *refresher, failed *error) {
	if p.o.Insecure && p.url.Scheme == "https" {
		p.shown.Warnings = append(p.shown.Warnings, "the server's certificate is not verified: any machine that answers gets the secrets of the request")
	}
	now := time.Now()
	if p.o.now != nil {
		now = p.o.now()
	}
	p.checkVersion(now)
	// chosen by the caller: deadlines in headers follow it
	chosen := p.changes.Timeout
	if chosen == defaultTimeout {
		chosen = 0
	}
	r = newRefresher(now, p.request.captured.Started, chosen)
	if p.o.random != nil {
		r.random = p.o.random
	}
	failed = new(error)
	r.make = p.maker(ctx, now, failed)
	return r, failed
}

// markLive marks the frames into which newPlanner inserted ids of the live server as changed.
func (p *planner) markLive() {
	for i := range p.shown.Frames {
		if f := &p.shown.Frames[i]; p.liveAt[f.Seq] {
			f.fresh = true
			p.refreshed(fmt.Sprintf("%s/%d", captures.Up, f.Seq))
		}
	}
}

// effects returns EffectsNone if the HTTP method, or the schema, promises that the request has no side
// effects, and effectsUnknown otherwise.
func (p *planner) effects() string {
	if p.overConnection() {
		return effectsUnknown
	}
	if p.shown.Method == http.MethodGet || p.shown.Method == http.MethodHead {
		return EffectsNone
	}
	if p.o.Schema != nil {
		if m := p.o.Schema.Method(p.shown.Service, p.shown.RPC); m != nil {
			if o, ok := m.Options().(*descriptorpb.MethodOptions); ok && o.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS {
				return EffectsNone
			}
		}
	}
	return effectsUnknown
}

// refuseForeign makes the plan refuse to be sent if it contains secrets and its host is neither the
// captured host nor this machine. If the captured host is a loopback address (such as a reverse proxy),
// any host is accepted.
func (p *planner) refuseForeign() {
	captured, err := url.Parse(p.captured.URL)
	if err != nil || p.isLocal() || p.shown.Refusal != "" || outbound.IsLoopback(captured.Hostname()) || strings.EqualFold(captured.Hostname(), p.url.Hostname()) {
		return
	}
	where := ""
	for _, s := range p.shown.Secrets {
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
		p.shown.Refusal = fmt.Sprintf("the secret in %s is of %s, and is not sent to %s", where, captured.Hostname(), p.url.Hostname())
	}
}

// target determines the URL to which the request is sent, and whether that host is allowed.
func (p *planner) target() error {
	u, err := p.targetOf(p.captured.URL)
	if err != nil {
		return fmt.Errorf("replay: exchange %d: %w", p.shown.Exchange, err)
	}
	p.url, p.shown.URL = u, connectionURL(p.captured.Transport, u)
	return nil
}

// finishURL replaces the placeholders in the URL by secrets, some of which come from headers.
func (p *planner) finishURL() (err error) {
	if p.url, err = p.fillURL(p.url); err != nil {
		return fmt.Errorf("replay: exchange %d: %w", p.shown.Exchange, err)
	}
	return nil
}

// finish determines how the body is sent (at once or as a stream, held open or not), once all frames
// are known.
func (p *planner) finish() error {
	if p.shown.Protocol == decode.ConnectGet {
		if err := p.finishGet(); err != nil {
			return err
		}
	}
	if p.overConnection() {
		p.shown.Hold = true
		return nil
	}
	if p.split != nil {
		// each piece is
		p.whole = true
		return p.number()
	}
	linked := false
	for i := range p.shown.Frames {
		linked = linked || p.shown.Frames[i].Answers != "" || len(p.shown.Frames[i].Live) > 0
	}
	p.whole = !linked && (len(p.shown.Frames) == 0 || !p.shown.Frames[0].framed || p.captured.RequestHeaders.Get("content-length") != "")
	p.shown.Hold = !p.whole && (linked || p.bidirectional())
	return nil
}

// finishGet writes the edited message of a Connect GET request into the query of its URL. The other
// parameters keep their positions and spelling.
func (p *planner) finishGet() error {
	if len(p.shown.Frames) != 1 || !p.shown.Frames[0].changed() && !p.recoded && !credential.InBytes.Match(p.shown.Frames[0].Data) {
		return nil
	}
	f := &p.shown.Frames[0]
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
	p.shown.URL, p.url.RawQuery = u.String(), sent
	return nil
}

// query returns the query of the target's URL with its parameter "message" replaced by the message
// data.
func (p *planner) query(f *PlanFrame, data []byte) (string, error) {
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
