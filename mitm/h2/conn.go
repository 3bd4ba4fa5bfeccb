package h2

import (
	"net"
	"sync"
)

// connBufferSize is how much is read from, or written to, a connection at once.
const connBufferSize = 64 << 10

// A Conn lets what is above it, TLS or not, read and write a connection in
// pieces larger than its own. Until a relay uses it, it buffers nothing.
type Conn struct {
	net.Conn

	// readBuf[readPos:readEnd] was read and not returned yet. Nil readBuf: reads
	// are not buffered.
	readBuf          []byte
	readPos, readEnd int

	// beforeRead is called before a read that may wait.
	beforeRead func()

	mu       sync.Mutex
	corked   bool
	writeBuf []byte
}

// bufferReads has reads go through a buffer. beforeRead is called before a read has
// to wait: the last moment to forward what earlier ones returned.
func (c *Conn) bufferReads(beforeRead func()) {
	c.readBuf, c.beforeRead = make([]byte, connBufferSize), beforeRead
}

func (c *Conn) Read(p []byte) (int, error) {
	if c.readBuf == nil {
		return c.Conn.Read(p)
	}
	if c.readPos == c.readEnd {
		c.beforeRead()
		if len(p) >= len(c.readBuf) {
			return c.Conn.Read(p)
		}
		n, err := c.Conn.Read(c.readBuf)
		if c.readPos, c.readEnd = 0, n; n == 0 {
			return 0, err
		}
	}
	n := copy(p, c.readBuf[c.readPos:c.readEnd])
	c.readPos += n
	return n, nil
}

func (c *Conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.corked {
		return c.Conn.Write(p)
	}
	c.writeBuf = append(c.writeBuf, p...)
	if len(c.writeBuf) < connBufferSize {
		return len(p), nil
	}
	return len(p), c.flush()
}

// cork collects what is written until uncork.
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
	if len(c.writeBuf) == 0 {
		return nil
	}
	_, err := c.Conn.Write(c.writeBuf)
	c.writeBuf = c.writeBuf[:0]
	return err
}

// NetConn returns what is below, as a *tls.Conn's does.
func (c *Conn) NetConn() net.Conn { return c.Conn }
