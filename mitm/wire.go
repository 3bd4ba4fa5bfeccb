package mitm

import "net"

// A replayConn is a connection of which some was read, to be read again.
type replayConn struct {
	net.Conn
	head []byte
}

func (c *replayConn) Read(p []byte) (int, error) {
	if len(c.head) > 0 {
		n := copy(p, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// NetConn returns what is below, as a *tls.Conn's does.
func (c *replayConn) NetConn() net.Conn { return c.Conn }

// clientOf returns the client's connection below whatever was put on it.
func clientOf(c net.Conn) *clientConn {
	for {
		if client, ok := c.(*clientConn); ok {
			return client
		}
		above, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		c = above.NetConn()
	}
}
