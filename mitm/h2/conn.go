package h2

import (
	"net"
	"sync"
)

// connBufferSize is the size of the read and write buffers, in bytes.
const connBufferSize = 64 << 10

// A Conn is a connection whose reads and writes can be buffered, with or without TLS above it. It is
// unbuffered until a relay uses it.
type Conn struct {
	// Conn is the underlying network connection, to which all other methods of net.Conn are promoted.
	net.Conn

	// readBuf[readPos:readEnd] are bytes that were read ahead. If readBuf is nil, reads are unbuffered.
	readBuf []byte
	// readPos is the index in readBuf of the next byte to return.
	readPos int
	// readEnd is the index in readBuf behind the last valid byte.
	readEnd int

	// beforeRead is called before a read that may block.
	beforeRead func()

	// mu guards corked and writeBuf.
	mu sync.Mutex
	// corked means that writes are collected in writeBuf.
	corked bool
	// writeBuf are the bytes that were written while corked and not yet passed to the connection.
	writeBuf []byte
}

// bufferReads enables read buffering. beforeRead is called before a read blocks: the last chance to forward what
// was read.
func (c *Conn) bufferReads(beforeRead func()) {
	c.readBuf, c.beforeRead = make([]byte, connBufferSize), beforeRead
}

// Read reads from the connection through the read buffer, if bufferReads has enabled it.
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

// Write writes to the connection, or into the write buffer while the connection is corked.
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

// cork buffers all writes until uncork is called.
func (c *Conn) cork() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.corked = true
}

// uncork writes the buffered bytes and ends the buffering.
func (c *Conn) uncork() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.corked = false
	return c.flush()
}

// flush writes the buffered bytes. The caller has locked mu.
func (c *Conn) flush() error {
	if len(c.writeBuf) == 0 {
		return nil
	}
	_, err := c.Conn.Write(c.writeBuf)
	c.writeBuf = c.writeBuf[:0]
	return err
}

// NetConn returns the underlying connection, as *tls.Conn does.
func (c *Conn) NetConn() net.Conn { return c.Conn }

// connBelow returns conn itself if it is a *Conn, or else the *Conn on which the TLS connection conn runs.
func connBelow(conn net.Conn) *Conn {
	if c, ok := conn.(*Conn); ok {
		return c
	}
	return conn.(interface{ NetConn() net.Conn }).NetConn().(*Conn)
}
