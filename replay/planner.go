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
	*Plan

	changes Changes
	request *Request
	body    []byte
	// liveAt are the request's frames with ids of the live server, by number.
	liveAt map[int]bool
	// liveNames are the headers with ids of the live server, in lower case.
	liveNames []string
}

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
		return nil, fmt.Errorf("replay: exchange %d: a conversation that is split across calls can only be sent in its captured codec", r.id)
	}
	if r.Codec != "" && ex.Transport != captures.HTTP {
		return nil, fmt.Errorf("replay: exchange %d: the messages of a connection without HTTP can only be sent in their captured codec", r.id)
	}
	p.captured, p.liveNames, p.liveAt = r.Issued.Apply(ex)
	for _, name := range p.liveNames {
		p.refreshed(name)
	}
	return p, nil
}

// targetOf returns the URL to which the request for a captured URL is sent. A target that is not
// allowed is recorded in the plan.
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
		p.shown.Refusal = strings.TrimPrefix(err.Error(), "replay: ")
	}
	return u, nil
}

func (p *planner) refreshed(name string) {
	if name = strings.ToLower(name); !slices.Contains(p.shown.Refreshed, name) {
		p.shown.Refreshed = append(p.shown.Refreshed, name)
	}
}
