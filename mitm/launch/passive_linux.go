package launch

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	dialTimeout = 30 * time.Second
	carryDelay  = 5 * time.Second // what bytes under way get when the command has ended
	carryBytes  = 64 << 10

	// maxAhead is how many bytes are carried that were not taken from the ring:
	// a quarter of it, as other packets are there too. Packets may be lost or be
	// of somebody else, so it is waited for a while only.
	maxAhead  = blockBytes * blockCount / 4
	aheadWait = 100 * time.Millisecond
	aheadStep = time.Millisecond
)

func runPassive(ctx context.Context, o Options, p Passive) (int, Packets, error) {
	if p.KeyLog == "" || p.Packet == nil {
		return statusNotExecutable, Packets{}, errors.New("launch: a passive capture wants a key log and a receiver of packets")
	}
	tap := &packetTap{packet: p.Packet}
	carried := carrier{recorded: &tap.payload}
	code, err := runNamespaced(ctx, o, namespaced{
		init:        p.Init,
		environment: func(o Options, _ string) ([]string, error) { return keyLogEnvironment(o.Env, p.KeyLog), nil },
		server:      &namespaceServer{serve: carried.serve, packets: tap},
	})
	carried.wait()
	return code, tap.finish(), err
}

// A carrier carries TCP connections to where they were meant to go, and not
// faster than their packets are recorded.
type carrier struct {
	carried  atomic.Int64
	recorded *atomic.Int64

	mu      sync.Mutex
	running int
	idle    chan struct{} // closed when nothing runs, if somebody waits
}

// serve carries what ln accepts, until that is closed.
func (c *carrier) serve(ln net.Listener) {
	for {
		conn, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // too many open files: some will be closed
			continue
		}
		c.add(1)
		go func() {
			defer c.add(-1)
			c.carry(conn.(*net.TCPConn))
		}()
	}
}

func (c *carrier) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running += n; c.running == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// wait gives what is under way a while to arrive.
func (c *carrier) wait() {
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
	case <-time.After(carryDelay):
	}
}

// carry connects to where inside was meant to go, and copies in both directions:
// an end stays an end and a reset a reset.
func (c *carrier) carry(inside *net.TCPConn) {
	defer inside.Close()
	conn, err := net.DialTimeout("tcp", inside.LocalAddr().String(), dialTimeout)
	if err != nil {
		_ = inside.SetLinger(0) // refused there: reset here
		return
	}
	outside := conn.(*net.TCPConn)
	defer outside.Close()
	var both sync.WaitGroup
	pass := func(to, from *net.TCPConn) {
		if err := c.copy(to, from); err == nil {
			_ = to.CloseWrite()
			return
		}
		for _, end := range []*net.TCPConn{to, from} {
			_ = end.SetLinger(0)
			_ = end.Close()
		}
	}
	both.Go(func() { pass(outside, inside) })
	both.Go(func() { pass(inside, outside) })
	both.Wait()
}

func (c *carrier) copy(to, from *net.TCPConn) error {
	buf := make([]byte, carryBytes)
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
func (c *carrier) pace(n int) {
	carried := c.carried.Add(int64(n))
	for waited := time.Duration(0); carried-c.recorded.Load() > maxAhead; waited += aheadStep {
		if waited >= aheadWait {
			c.carried.Store(c.recorded.Load()) // what is missing will not come
			return
		}
		time.Sleep(aheadStep)
	}
}
