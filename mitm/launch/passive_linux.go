package launch

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"unwire/mitm/process"
)

const (
	// dialTimeout limits connecting to a destination. copyBufferSize is in bytes.
	dialTimeout    = 30 * time.Second
	copyBufferSize = 64 << 10

	// drainTimeout is how long connections may take to end after the command has ended.
	drainTimeout = 5 * time.Second

	// maxUnrecorded is how many bytes may be forwarded before their packets were read from the ring buffer: a
	// quarter of its size, because it contains other packets too. Packets can be lost or belong to other
	// connections, so forwarding waits at most paceTimeout.
	maxUnrecorded = blockBytes * blockCount / 4
	paceTimeout   = 100 * time.Millisecond
	paceInterval  = time.Millisecond
)

// runPassive implements RunPassive on Linux.
func runPassive(ctx context.Context, o Options, p Passive) (int, Packets, error) {
	if p.KeyLog == "" || p.Packet == nil {
		return statusNotExecutable, Packets{}, errors.New("launch: a passive capture needs a key log and a receiver of packets")
	}
	packets := &packetReader{packet: p.Packet}
	forwarder := tcpForwarder{recorded: &packets.payload, connection: p.Connection}
	code, err := runInNamespace(ctx, o, namespaceRun{
		init:        p.Init,
		environment: func(o Options, _ string) ([]string, error) { return keyLogEnvironment(o.Env, p.KeyLog), nil },
		server:      &namespaceServer{serve: forwarder.serve, packets: packets},
	})
	forwarder.awaitIdle()
	return code, packets.finish(), err
}

// A tcpForwarder forwards the TCP connections of a namespace to their original destinations, but not faster
// than their packets are recorded.
type tcpForwarder struct {
	// forwarded is the number of bytes of TCP payload that were forwarded so far.
	forwarded atomic.Int64
	// recorded is the number of bytes of TCP payload whose packets were read so far.
	recorded *atomic.Int64

	// connection is Passive.Connection; it may be nil.
	connection func(net.Conn, *process.Sockets)

	// mu guards the fields below.
	mu sync.Mutex
	// running is the number of running connections.
	running int

	// idle is closed when no connection is running; nil if nobody waits.
	idle chan struct{}
}

// serve forwards the connections of ln until ln is closed.
func (c *tcpForwarder) serve(ln net.Listener, sockets *process.Sockets) {
	for {
		conn, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Too many files are open; some will be closed.
			time.Sleep(10 * time.Millisecond)
			continue
		}
		c.countConns(1)
		go func() {
			defer c.countConns(-1)
			if c.connection != nil {
				c.connection(conn, sockets)
			}
			c.forward(conn.(*net.TCPConn))
		}()
	}
}

// countConns adds n to the number of running connections.
func (c *tcpForwarder) countConns(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running += n; c.running == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// awaitIdle waits up to drainTimeout until no connection is running.
func (c *tcpForwarder) awaitIdle() {
	c.mu.Lock()
	if c.running == 0 {
		c.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	c.idle = idle
	c.mu.Unlock()
	select {
	case <-idle:
	case <-time.After(drainTimeout):
	}
}

// forward connects to the original destination of a connection and copies both directions, including
// half-closes and resets.
func (c *tcpForwarder) forward(inside *net.TCPConn) {
	defer inside.Close()
	conn, err := net.DialTimeout("tcp", inside.LocalAddr().String(), dialTimeout)
	if err != nil {
		// The destination refused the connection: reset it here.
		_ = inside.SetLinger(0)
		return
	}
	outside := conn.(*net.TCPConn)
	defer outside.Close()
	var both sync.WaitGroup
	forwardHalf := func(to, from *net.TCPConn) {
		if err := c.copyPaced(to, from); err == nil {
			_ = to.CloseWrite()
			return
		}
		for _, end := range []*net.TCPConn{to, from} {
			_ = end.SetLinger(0)
			_ = end.Close()
		}
	}
	both.Go(func() { forwardHalf(outside, inside) })
	both.Go(func() { forwardHalf(inside, outside) })
	both.Wait()
}

// copyPaced copies all bytes from one connection to the other, no faster than their packets are recorded.
func (c *tcpForwarder) copyPaced(to, from *net.TCPConn) error {
	buf := make([]byte, copyBufferSize)
	for {
		n, err := from.Read(buf)
		c.pace(n)
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// pace counts n forwarded bytes, and waits if the recording of packets is far behind.
func (c *tcpForwarder) pace(n int) {
	forwarded := c.forwarded.Add(int64(n))
	for waited := time.Duration(0); forwarded-c.recorded.Load() > maxUnrecorded; waited += paceInterval {
		if waited >= paceTimeout {
			// The missing packets will not come.
			c.forwarded.Store(c.recorded.Load())
			return
		}
		time.Sleep(paceInterval)
	}
}
