package h2

import (
	"net"
	"sync"
)

// wireSize is how much is read from, or written to, a connection at once.
const wireSize = 64 << 10

// A Conn lets what is above it, TLS or not, read and write a connection in
// pieces larger than its own. Until bulk is called it only passes through.
type Conn struct {
	net.Conn
	in    []byte // nil: reads pass through
	r, w  int    // what of in is still to be read
	block func() // called before a read that may wait

	mu     sync.Mutex
	corked bool
	out    []byte
}

// bulk has reads go through a buffer. Before one has to wait, block is called:
// the last moment to pass on what earlier ones returned.
func (c *Conn) bulk(block func()) {
	c.in, c.block = make([]byte, wireSize), block
}

func (c *Conn) Read(p []byte) (int, error) {
	if c.in == nil {
		return c.Conn.Read(p)
	}
	if c.r == c.w {
		c.block()
		if len(p) >= len(c.in) {
			return c.Conn.Read(p)
		}
		n, err := c.Conn.Read(c.in)
		if c.r, c.w = 0, n; n == 0 {
			return 0, err
		}
	}
	n := copy(p, c.in[c.r:c.w])
	c.r += n
	return n, nil
}

func (c *Conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.corked {
		return c.Conn.Write(p)
	}
	c.out = append(c.out, p...)
	if len(c.out) < wireSize {
		return len(p), nil
	}
	return len(p), c.flush()
}

// cork gathers what is written until uncork.
func (c *Conn) cork() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.corked = true
}

func (c *Conn) uncork() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.corked = false
	return c.flush()
}

func (c *Conn) flush() error {
	if len(c.out) == 0 {
		return nil
	}
	_, err := c.Conn.Write(c.out)
	c.out = c.out[:0]
	return err
}

// NetConn returns what is below, as a *tls.Conn's does.
func (c *Conn) NetConn() net.Conn { return c.Conn }
