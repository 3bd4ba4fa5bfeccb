package agent

import "time"

// SetHeartbeats changes the intervals of heartbeats.
func (c *Client) SetHeartbeats(client, exec time.Duration) { c.beat, c.execBeat = client, exec }
