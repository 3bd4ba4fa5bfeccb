package agent

import (
	"context"
	"sync"

	"unwire/replay/agent/internal/transport"
)

// agents is what opens the agent's streams.
type agents struct {
	mu    sync.Mutex
	agent *transport.Dialer
}

func (a *agents) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.agent != nil {
		a.agent.Close()
	}
}

// agent returns what opens streams to the host that runs the agent.
func (c *Client) agent(_ context.Context) (*transport.Dialer, error) {
	c.agents.mu.Lock()
	defer c.agents.mu.Unlock()
	if c.agents.agent == nil {
		c.agents.agent = c.dialer(c.o.Profile.Agent(c.o.URL, c.privacy()))
	}
	return c.agents.agent, nil
}
