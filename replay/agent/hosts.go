package agent

import (
	"context"
	"net/url"
	"sync"

	"unwire/replay/agent/internal/transport"
	"unwire/replay/outbound"
)

// agents are the dialers for the agent's streams, which may go to another host than other calls.
type agents struct {
	// mu guards the fields below.
	mu sync.Mutex

	// found is the URL of the agent's host; nil until it is known.
	found *url.URL

	// byHost has a dialer for each host of the agent that was used.
	byHost map[string]*transport.Dialer
}

// close closes the idle connections of all dialers.
func (a *agents) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, d := range a.byHost {
		d.Close()
	}
}

// agent returns the dialer for the host that runs the agent. At first use, the server is asked for that
// host.
func (c *Client) agent(ctx context.Context) *transport.Dialer {
	c.agents.mu.Lock()
	defer c.agents.mu.Unlock()
	u := c.agents.found
	if u == nil {
		known := false
		if u, known = c.configured(ctx); u == nil {
			u = c.o.Profile.AgentEndpoint(c.o.URL, c.privacy())
		}
		if known {
			c.agents.found = u
		}
	}
	d := c.agents.byHost[u.Host]
	if d == nil {
		d = c.dialer(u)
		if c.agents.byHost == nil {
			c.agents.byHost = map[string]*transport.Dialer{}
		}
		c.agents.byHost[u.Host] = d
	}
	return d
}

// configured asks the server for the URL of the agent's host, which depends on privacy mode. It returns
// nil if the server names none, or one that may not be contacted. known is false if the request failed,
// so that the next stream asks again.
//
// Source: RESEARCH.md#transports
func (c *Client) configured(ctx context.Context) (u *url.URL, known bool) {
	if !c.o.Hosts {
		return nil, true
	}
	config, err := c.unary(ctx, "aiserver.v1.ServerConfigService", "GetServerConfig")
	if err != nil {
		return nil, false
	}
	name := "agentn_url"
	if c.o.Privacy {
		name = "agent_url"
	}
	u, err = url.Parse(config.Text("agent_url_config", name))
	if err != nil || u.Scheme != c.o.URL.Scheme && u.Scheme != "https" || outbound.CheckTarget(u, c.o.Live, c.o.AllowHosts) != nil {
		return nil, true
	}
	return u, true
}
