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
	dialTimeout    = 30 * time.Second
	copyBufferSize = 64 << 10

	// drainTimeout is for bytes under way when the command has ended.
	drainTimeout = 5 * time.Second

	// maxUnrecorded is how many bytes are forwarded before their packets were read
	// from the ring: a quarter of it, as other packets are there too. Packets may be
	// lost or belong to other connections, so forwarding waits for them no longer
	// than paceTimeout.
	maxUnrecorded = blockBytes * blockCount / 4
	paceTimeout   = 100 * time.Millisecond
	paceInterval  = time.Millisecond
)

func runPassive(ctx context.Context, o Options, p Passive) (int, Packets, error) {
	if p.KeyLog == "" || p.Packet == nil {
		return statusNotExecutable, Packets{}, errors.New("launch: a passive capture wants a key log and a receiver of packets")
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

// A tcpForwarder forwards TCP connections to where they were meant to go, and not
// faster than their packets are recorded.
type tcpForwarder struct {
	forwarded atomic.Int64
	recorded  *atomic.Int64

	connection func(net.Conn, *process.Sockets) // may be nil

	mu      sync.Mutex
	running int // connections

	// idle is closed when nothing runs; nil: nothing waits for it.
	idle chan struct{}
}

// serve forwards what ln accepts, until that is closed.
func (c *tcpForwarder) serve(ln net.Listener, sockets *process.Sockets) {
	for {
		conn, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // too many open files: some will be closed
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

func (c *tcpForwarder) countConns(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running += n; c.running == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// awaitIdle waits until no connection is left, for drainTimeout at most.
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

// forward connects to where inside was meant to go, and copies in both directions:
// an end stays an end and a reset a reset.
func (c *tcpForwarder) forward(inside *net.TCPConn) {
	defer inside.Close()
	conn, err := net.DialTimeout("tcp", inside.LocalAddr().String(), dialTimeout)
	if err != nil {
		_ = inside.SetLinger(0) // refused there: reset here
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

// pace counts bytes, and waits while the recording is far behind.
func (c *tcpForwarder) pace(n int) {
	forwarded := c.forwarded.Add(int64(n))
	for waited := time.Duration(0); forwarded-c.recorded.Load() > maxUnrecorded; waited += paceInterval {
		if waited >= paceTimeout {
			c.forwarded.Store(c.recorded.Load()) // what is missing will not come
			return
		}
		time.Sleep(paceInterval)
	}
}
