package pcapng

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"unwire/captures"
)

const (
	maxSegment = 1400 // bytes of TCP in a packet
	window     = 65535
)

// A link is one TCP connection whose packets are made, with TLS on it or not.
type link struct {
	out *writer

	// addr has the client's address, then the server's: the directions are up and down.
	addr [2]netip.AddrPort
	seq  [2]uint32
	fin  [2]bool

	// now is the time of the last packet: no packet is earlier.
	now time.Time

	// ends has the client's end, then the server's: what is written there is sent.
	ends    [2]io.Writer
	packets int64
	buf     gopacket.SerializeBuffer

	// held are the packets that wait until the secrets that decrypt them are written.
	held    []heldPacket
	holding bool
}

type heldPacket struct {
	t    time.Time
	data []byte
}

// newLink opens a connection at t.
func newLink(out *writer, client, server netip.AddrPort, t time.Time) (*link, error) {
	l := &link{out: out, addr: [2]netip.AddrPort{client, server}, seq: [2]uint32{1000, 5000}, now: t, buf: gopacket.NewSerializeBuffer()}
	for dir := range l.ends {
		l.ends[dir] = segments{l, captures.Direction(dir)}
	}
	for _, p := range []struct {
		dir captures.Direction
		set func(*layers.TCP)
	}{
		{captures.Up, func(h *layers.TCP) { h.SYN, h.ACK = true, false }},
		{captures.Down, func(h *layers.TCP) { h.SYN = true }},
	} {
		if err := l.writePacket(p.dir, nil, p.set); err != nil {
			return nil, err
		}
		l.seq[p.dir]++
	}
	return l, l.writePacket(captures.Up, nil, nil)
}

// advanceTo moves the clock on.
func (l *link) advanceTo(t time.Time) {
	if t.After(l.now) {
		l.now = t
	}
}

// A segments sends what is written to it as packets, each write acknowledged.
type segments struct {
	l   *link
	dir captures.Direction
}

func (s segments) Write(p []byte) (int, error) {
	for part := range slices.Chunk(p, maxSegment) {
		if err := s.l.writePacket(s.dir, part, func(h *layers.TCP) { h.PSH = true }); err != nil {
			return 0, err
		}
		s.l.seq[s.dir] += uint32(len(part))
	}
	return len(p), s.l.writePacket(1-s.dir, nil, nil)
}

// close ends a direction.
func (l *link) close(dir captures.Direction) error {
	if l.fin[dir] {
		return nil
	}
	l.fin[dir] = true
	if c, ok := l.ends[dir].(*tls.Conn); ok {
		if err := c.CloseWrite(); err != nil {
			return err
		}
	}
	err := l.writePacket(dir, nil, func(h *layers.TCP) { h.FIN = true })
	l.seq[dir]++
	return err
}

// reset has one side break the connection.
func (l *link) reset(dir captures.Direction) error {
	l.fin = [2]bool{true, true}
	return l.writePacket(dir, nil, func(h *layers.TCP) { h.RST = true })
}

func (l *link) writePacket(dir captures.Direction, payload []byte, set func(*layers.TCP)) error {
	src, dst := l.addr[dir], l.addr[1-dir]
	h := layers.TCP{
		SrcPort: layers.TCPPort(src.Port()), DstPort: layers.TCPPort(dst.Port()),
		Seq: l.seq[dir], Ack: l.seq[1-dir], ACK: true, Window: window,
	}
	if set != nil {
		set(&h)
	}
	if !h.ACK {
		h.Ack = 0
	}
	eth := layers.Ethernet{SrcMAC: hardwareAddr(dir), DstMAC: hardwareAddr(1 - dir), EthernetType: layers.EthernetTypeIPv4}
	var ip gopacket.SerializableLayer
	if src.Addr().Is4() {
		v4 := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: src.Addr().AsSlice(), DstIP: dst.Addr().AsSlice()}
		ip = v4
		_ = h.SetNetworkLayerForChecksum(v4) // fails for other layers only
	} else {
		v6 := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolTCP, SrcIP: src.Addr().AsSlice(), DstIP: dst.Addr().AsSlice()}
		ip, eth.EthernetType = v6, layers.EthernetTypeIPv6
		_ = h.SetNetworkLayerForChecksum(v6)
	}
	options := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(l.buf, options, &eth, ip, &h, gopacket.Payload(payload)); err != nil {
		return fmt.Errorf("pcapng: %w", err)
	}
	l.packets++
	if l.holding {
		l.held = append(l.held, heldPacket{l.now, bytes.Clone(l.buf.Bytes())})
		return nil
	}
	return l.out.packet(l.now, l.buf.Bytes(), len(l.buf.Bytes()))
}

// hardwareAddr is a side's address: locally administered ones of nobody.
func hardwareAddr(dir captures.Direction) net.HardwareAddr {
	return net.HardwareAddr{2, 0, 0, 0, 0, byte(dir) + 1}
}

// startTLS puts TLS onto the connection: a real client and a real server of
// crypto/tls shake hands over it, and their secrets are written before their
// packets.
func (l *link) startTLS(version uint16, name, protocol string, cert tls.Certificate) error {
	var keys bytes.Buffer
	client := &tls.Config{
		ServerName: name,
		//nolint:gosec // both ends are this function
		InsecureSkipVerify: true,

		MinVersion: version, MaxVersion: version, KeyLogWriter: &keys, DynamicRecordSizingDisabled: true,
	}
	server := &tls.Config{
		Certificates: []tls.Certificate{cert}, MinVersion: version, MaxVersion: version,
		SessionTicketsDisabled: true, DynamicRecordSizingDisabled: true,
	}
	if protocol != "" {
		client.NextProtos, server.NextProtos = []string{protocol}, []string{protocol}
	}
	l.holding = true
	w := &tlsPipe{l: l}
	w.cond = sync.NewCond(&w.mu)
	ends := [2]*tls.Conn{tls.Client(&tlsPipeEnd{w, captures.Up}, client), tls.Server(&tlsPipeEnd{w, captures.Down}, server)}
	done := make(chan error, 1)
	go func() {
		err := ends[captures.Down].Handshake()
		w.fail(err)
		done <- err
	}()
	err := ends[captures.Up].Handshake()
	w.fail(err)
	if err = errors.Join(err, <-done); err != nil {
		return fmt.Errorf("pcapng: handshake: %w", err)
	}
	w.handshakeDone = true
	l.holding = false
	if err := l.out.secrets(keys.Bytes()); err != nil {
		return err
	}
	for _, p := range l.held {
		if err := l.out.packet(p.t, p.data, len(p.data)); err != nil {
			return err
		}
	}
	l.held = nil
	for dir := range l.ends {
		l.ends[dir] = ends[dir]
	}
	return nil
}

// A tlsPipe carries the handshake from end to end, and makes packets of it. Later
// nobody reads what is written.
type tlsPipe struct {
	l             *link
	mu            sync.Mutex
	cond          *sync.Cond
	pending       [2][]byte // written by the client, by the server
	err           error
	handshakeDone bool
}

// fail ends the waiting of the other end.
func (w *tlsPipe) fail(err error) {
	if err == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	w.cond.Broadcast()
}

// A tlsPipeEnd is one end of a tlsPipe.
type tlsPipeEnd struct {
	w   *tlsPipe
	dir captures.Direction // of what it writes
}

func (e *tlsPipeEnd) Write(p []byte) (int, error) {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	if !e.w.handshakeDone {
		e.w.pending[e.dir] = append(e.w.pending[e.dir], p...)
		e.w.cond.Broadcast()
	}
	return segments{e.w.l, e.dir}.Write(p)
}

func (e *tlsPipeEnd) Read(p []byte) (int, error) {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	from := &e.w.pending[1-e.dir]
	for len(*from) == 0 {
		if e.w.err != nil {
			return 0, e.w.err
		}
		e.w.cond.Wait()
	}
	n := copy(p, *from)
	*from = (*from)[n:]
	return n, nil
}

func (e *tlsPipeEnd) Close() error        { return nil }
func (e *tlsPipeEnd) LocalAddr() net.Addr { return net.TCPAddrFromAddrPort(e.w.l.addr[e.dir]) }

func (e *tlsPipeEnd) RemoteAddr() net.Addr             { return net.TCPAddrFromAddrPort(e.w.l.addr[1-e.dir]) }
func (e *tlsPipeEnd) SetDeadline(time.Time) error      { return nil }
func (e *tlsPipeEnd) SetReadDeadline(time.Time) error  { return nil }
func (e *tlsPipeEnd) SetWriteDeadline(time.Time) error { return nil }
