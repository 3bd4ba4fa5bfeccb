package replay

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"unwire/captures"
	"unwire/replay/outbound"
)

// A planner builds a plan from a request. Only the planner changes the plan, and returns it when it
// is complete.
type planner struct {
	// Plan is the plan that is being built.
	*Plan

	// changes are the requested changes to the captured request.
	changes Changes

	// request is the request that is being resolved.
	request *Request

	// body is the request body, after transcoding.
	body []byte
	// liveAt has the numbers of the client's frames into which ids of the live server were inserted.
	liveAt map[int]bool
	// liveNames are the names, in lower case, of headers into which ids of the live server were
	// inserted.
	liveNames []string
}

// newPlanner starts a plan for a request: it sets defaults, finds the message types, and inserts the
// ids that the live server issued in earlier calls (Changes.Issued). It fails if the request cannot be
// transcoded as requested.
func newPlanner(r *Request, o Options) (*planner, error) {
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultMaxBytes
	}
	ex := r.captured
	p := &planner{
		Plan: &Plan{
			shown: Description{
				Exchange: r.id, Method: ex.Method, HTTP: ex.HTTP, Protocol: ex.Protocol, Codec: ex.Codec,
				Service: ex.Service, RPC: ex.RPC, Refreshed: []string{}, Secrets: []Secret{}, Edits: []string{}, Frames: []PlanFrame{},
			},
			timing: r.Timing, o: o, tags: map[string]string{}, ending: r.ending,
		},
		changes: r.Changes, request: r,
	}
	p.timing.defaults()
	if o.Schema != nil {
		p.types[captures.Up] = o.Schema.FrameType(ex.Call, captures.Up)
		p.types[captures.Down] = o.Schema.FrameType(ex.Call, captures.Down)
	}
	if r.Codec != "" && r.conversation != nil {
		return nil, fmt.Errorf("replay: exchange %d belongs to a stream that is split across several calls: it can be sent only in its captured codec", r.id)
	}
	if r.Codec != "" && ex.Transport != captures.HTTP {
		return nil, fmt.Errorf("replay: exchange %d is a connection without HTTP: its messages can be sent only in their captured codec", r.id)
	}
	p.captured, p.liveNames, p.liveAt = r.Issued.Apply(ex)
	for _, name := range p.liveNames {
		p.refreshed(name)
	}
	return p, nil
}

// targetOf returns the URL to send a request to, given its captured URL: Changes.To replaces the host.
// If that host is not allowed, the reason is stored in the plan's Refusal.
func (p *planner) targetOf(captured string) (*url.URL, error) {
	u, err := url.Parse(captured)
	if err != nil {
		return nil, err
	}
	if to := p.changes.To; to != nil {
		u.Scheme, u.Host = to.Scheme, to.Host
		if prefix := strings.TrimSuffix(to.Path, "/"); prefix != "" {
			u.Path, u.RawPath = prefix+u.Path, ""
		}
	}
	// neither is in the request; the authorization header has its own say
	u.User, u.Fragment = nil, ""
	if err := outbound.CheckTarget(u, p.o.Live, p.o.AllowHosts); err != nil {
		p.shown.Refusal = strings.TrimPrefix(err.Error(), "replay: "+outbound.ErrRefused.Error()+": ")
	}
	return u, nil
}

// refreshed lists a header, or a frame such as "up/0", as one whose id or time was replaced. It may be
// called repeatedly.
func (p *planner) refreshed(name string) {
	if name = strings.ToLower(name); !slices.Contains(p.shown.Refreshed, name) {
		p.shown.Refreshed = append(p.shown.Refreshed, name)
	}
}
