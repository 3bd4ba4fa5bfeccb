package launch

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"unwire/mitm/quic"
)

const (
	// maxDatagram limits a UDP datagram in bytes.
	maxDatagram = 64 << 10

	// maxFlows limits the number of concurrent flows, and flowIdle is how long a flow is kept without traffic.
	maxFlows = 1024
	flowIdle = 60 * time.Second
	// dnsIdle is how long the flow of a DNS query is kept without traffic. It is short, because each
	// query uses its own port.
	dnsIdle = 10 * time.Second

	// dnsPort is the UDP port of DNS servers.
	dnsPort = 53

	// bindTimeout limits the wait for a socket from the process in the namespace.
	bindTimeout = 5 * time.Second
)

// A binder obtains sockets inside the network namespace from the process that runs in it.
type binder struct {
	// mu serialises requests to the child process.
	mu sync.Mutex
	// control is the connection to the child process in the namespace.
	control *control
}

// bind returns a UDP socket inside the namespace that is bound to any address, even one that the namespace does
// not have.
func (b *binder) bind(at netip.AddrPort) (*net.UDPConn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.control.conn.SetDeadline(time.Now().Add(bindTimeout)); err != nil {
		return nil, err
	}
	if err := b.control.send(message{Bind: at.String()}); err != nil {
		return nil, err
	}
	m, files, err := b.control.receive()
	if err != nil {
		return nil, err
	}
	defer closeAll(files)
	if m.Error != "" || len(files) != 1 {
		return nil, fmt.Errorf("launch: the network namespace cannot be used: %s", m.Error)
	}
	return udpConn(files[0])
}

// udpConn returns the UDP socket that is the open file f.
func udpConn(f *os.File) (*net.UDPConn, error) {
	conn, err := net.FilePacketConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := conn.(*net.UDPConn)
	if !ok {
		_ = conn.Close()
		return nil, errors.New("launch: the socket from the network namespace is not a UDP socket")
	}
	return u, nil
}

// A datagramRelay forwards UDP datagrams from the network namespace to their destinations outside, and the
// replies back. Datagrams that cannot be forwarded are dropped.
type datagramRelay struct {
	// inside receives all datagrams that are sent in the namespace.
	inside *net.UDPConn
	// binder obtains the sockets from which replies are sent.
	binder *binder

	// quic says which QUIC connections are refused and reported.
	quic QUIC

	// mu guards the fields below.
	mu sync.Mutex
	// closed means that no more datagrams are forwarded.
	closed bool

	// flows are the current flows; mu guards them and closed.
	flows map[flowKey]*flow

	// reported are the destinations for which QUIC was reported.
	reported map[netip.AddrPort]bool
}

// A flowKey identifies a flow by the addresses of the sender and the destination.
type flowKey struct {
	// from is the address of the program that sends the datagrams.
	from netip.AddrPort
	// to is their destination.
	to netip.AddrPort
}

// A flow is the pair of sockets for the datagrams between one sender in the namespace and one destination.
type flow struct {
	// outside is a socket of the host that is connected to the destination; nil if the flow's datagrams are
	// refused as QUIC.
	outside *net.UDPConn

	// answers is a socket in the namespace, bound to the destination's address, from which replies are sent to the
	// program.
	answers *net.UDPConn
	// from is the address of the program that sends the datagrams.
	from netip.AddrPort
	// idle is how long the flow is kept without replies.
	idle time.Duration
}

// newDatagramRelay returns a relay for the datagrams that the socket f, inside the namespace, receives.
func newDatagramRelay(f *os.File, b *binder, q QUIC) (*datagramRelay, error) {
	conn, err := udpConn(f)
	if err != nil {
		return nil, err
	}
	return &datagramRelay{inside: conn, binder: b, quic: q, flows: make(map[flowKey]*flow), reported: make(map[netip.AddrPort]bool)}, nil
}

// run forwards datagrams until the relay is closed.
func (r *datagramRelay) run() {
	data, oob := make([]byte, maxDatagram), make([]byte, unix.CmsgSpace(unix.SizeofSockaddrInet6))
	for {
		n, oobn, _, from, err := r.inside.ReadMsgUDPAddrPort(data, oob)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// An ICMP error for an earlier answer; ignore it.
			continue
		}
		to, ok := originalDestination(oob[:oobn])
		if !ok {
			continue
		}
		if r.isAnswer(from, to) {
			// The client no longer exists.
			continue
		}
		opening, isQUIC := quic.ParseInitial(data[:n])
		refuse := to.Port() == quicPort || isQUIC && r.quic.Block
		if isQUIC {
			r.reportQUIC(to, refuse)
		}
		f := r.flowFor(flowKey{from, to}, refuse)
		switch {
		case f == nil:
		case f.outside == nil && isQUIC:
			_, _ = f.answers.WriteToUDPAddrPort(opening.Refusal(), from)
		// These are further datagrams of a refused connection.
		case f.outside == nil:
		default:
			_ = f.outside.SetReadDeadline(time.Now().Add(f.idle))
			// An ICMP error is noticed by the reader.
			_, _ = f.outside.Write(data[:n])
		}
	}
}

// isAnswer reports whether a datagram is a reply that was forwarded into the namespace, and came back because
// its recipient no longer exists.
func (r *datagramRelay) isAnswer(from, to netip.AddrPort) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.flows[flowKey{from: to, to: from}] != nil
}

// reportQUIC calls QUIC.Report for the first QUIC connection to each destination.
func (r *datagramRelay) reportQUIC(to netip.AddrPort, refused bool) {
	if r.quic.Report == nil || r.reported[to] || len(r.reported) >= maxFlows {
		return
	}
	r.reported[to] = true
	r.quic.Report(to, refused)
}

// originalDestination returns the destination of a datagram from oob, the control data that was received with
// it.
func originalDestination(oob []byte) (netip.AddrPort, bool) {
	parts, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return netip.AddrPort{}, false
	}
	for i := range parts {
		sa, err := unix.ParseOrigDstAddr(&parts[i])
		if err != nil {
			continue
		}
		switch sa := sa.(type) {
		case *unix.SockaddrInet4:
			return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port)), true
		case *unix.SockaddrInet6:
			return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr), uint16(sa.Port)), true
		}
	}
	return netip.AddrPort{}, false
}

// flowFor returns the flow for a sender and a destination, which it creates if necessary; nil if that is not
// possible. If refuse is set, a new flow drops all datagrams.
func (r *datagramRelay) flowFor(key flowKey, refuse bool) *flow {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.flows[key]; f != nil || r.closed || len(r.flows) >= maxFlows {
		return f
	}
	answers, err := r.binder.bind(key.to)
	if err != nil {
		return nil
	}

	// A refused flow only swallows datagrams until it is idle, so that the client falls back to
	// TCP.
	if refuse {
		f := &flow{answers: answers, from: key.from}
		r.flows[key] = f
		time.AfterFunc(flowIdle, func() { r.remove(key, f) })
		return f
	}
	outside, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(key.to))
	if err != nil {
		_ = answers.Close()
		return nil
	}
	f := &flow{outside, answers, key.from, flowIdle}
	if key.to.Port() == dnsPort {
		f.idle = dnsIdle
	}
	r.flows[key] = f
	_ = outside.SetReadDeadline(time.Now().Add(f.idle))
	go func() {
		f.forwardAnswers()
		r.remove(key, f)
	}()
	return f
}

// remove removes and closes a flow.
func (r *datagramRelay) remove(key flowKey, f *flow) {
	r.mu.Lock()
	delete(r.flows, key)
	r.mu.Unlock()
	f.close()
}

// forwardAnswers forwards replies to the sender until none has arrived for the idle time.
func (f *flow) forwardAnswers() {
	data := make([]byte, maxDatagram)
	for {
		n, err := f.outside.Read(data)
		if err != nil {
			return
		}
		_ = f.outside.SetReadDeadline(time.Now().Add(f.idle))
		// If it fails, the client no longer exists.
		_, _ = f.answers.WriteToUDPAddrPort(data[:n], f.from)
	}
}

// close closes the sockets of the flow.
func (f *flow) close() {
	if f.outside != nil {
		_ = f.outside.Close()
	}
	_ = f.answers.Close()
}

// close closes all sockets of the relay.
func (r *datagramRelay) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	_ = r.inside.Close()
	for _, f := range r.flows {
		f.close()
	}
}
