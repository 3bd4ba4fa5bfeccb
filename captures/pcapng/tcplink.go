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
	// maxSegment is the size of the TCP payload of a packet, in bytes.
	maxSegment = 1400

	// window is the receive window in all packets, in bytes.
	window = 65535
)

// A link synthesizes the packets of one TCP connection, optionally with TLS, and writes them to a pcapng file.
type link struct {
	// out writes the pcapng file.
	out *writer

	// addr are the addresses of the client and the server, indexed by the direction in which each sends.
	addr [2]netip.AddrPort

	// seq is the next TCP sequence number of each side, indexed by the direction in which it sends.
	seq [2]uint32
	// fin is true for each side that has sent a FIN or RST, indexed by the direction in which it sends.
	fin [2]bool

	// now is the time of the last packet. Time never decreases.
	now time.Time

	// ends are the client's and the server's end: bytes written to an end become packets that this side sends.
	ends [2]io.Writer

	// comment is the comment of the packets with data that are written now; "" for none.
	comment string

	// packets is the number of packets written for the connection.
	packets int64
	// buf is a reused buffer for encoding one packet.
	buf gopacket.SerializeBuffer

	// deferred are packets of the TLS handshake that are written to the file only after the secrets that
	// decrypt them.
	deferred []deferredPacket
	// deferring means that new packets are added to deferred, because the TLS handshake is still running.
	deferring bool
}

// A deferredPacket is a packet with its time that is not written to the file yet.
type deferredPacket struct {
	// t is the timestamp of the packet.
	t time.Time
	// data is the whole packet, from its Ethernet header.
	data []byte
}

// newLink writes the TCP handshake of a connection at time t, and returns the connection.
func newLink(out *writer, client, server netip.AddrPort, t time.Time) (*link, error) {
	l := &link{out: out, addr: [2]netip.AddrPort{client, server}, seq: [2]uint32{1000, 5000}, now: t, buf: gopacket.NewSerializeBuffer()}
	for dir := range l.ends {
		l.ends[dir] = segmentWriter{l, captures.Direction(dir)}
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

// advanceTo sets the time of the next packets to t, unless the last packet is already later.
func (l *link) advanceTo(t time.Time) {
	if t.After(l.now) {
		l.now = t
	}
}

// A segmentWriter writes bytes as TCP segments of one direction, and acknowledges each write.
type segmentWriter struct {
	// l is the TCP connection to which the segments belong.
	l *link
	// dir is the direction in which the segments are sent.
	dir captures.Direction
}

// Write writes p in segments of at most maxSegment bytes, and an acknowledgment from the other side.
func (s segmentWriter) Write(p []byte) (int, error) {
	for part := range slices.Chunk(p, maxSegment) {
		if err := s.l.writePacket(s.dir, part, func(h *layers.TCP) { h.PSH = true }); err != nil {
			return 0, err
		}
		s.l.seq[s.dir] += uint32(len(part))
	}
	return len(p), s.l.writePacket(1-s.dir, nil, nil)
}

// close ends a direction with a FIN, and with TLS's close_notify before it if TLS is used.
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

// reset writes an RST from one side, which ends the connection.
func (l *link) reset(dir captures.Direction) error {
	l.fin = [2]bool{true, true}
	return l.writePacket(dir, nil, func(h *layers.TCP) { h.RST = true })
}

// writePacket writes a packet that one side sends, with the current sequence numbers. set, if not nil, changes
// the TCP header.
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

	// The IP version follows from the addresses.
	eth := layers.Ethernet{SrcMAC: hardwareAddr(dir), DstMAC: hardwareAddr(1 - dir), EthernetType: layers.EthernetTypeIPv4}
	var ip gopacket.SerializableLayer
	if src.Addr().Is4() {
		v4 := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: src.Addr().AsSlice(), DstIP: dst.Addr().AsSlice()}
		ip = v4
		// It fails only for other layers.
		_ = h.SetNetworkLayerForChecksum(v4)
	} else {
		v6 := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolTCP, SrcIP: src.Addr().AsSlice(), DstIP: dst.Addr().AsSlice()}
		ip, eth.EthernetType = v6, layers.EthernetTypeIPv6
		_ = h.SetNetworkLayerForChecksum(v6)
	}
	options := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(l.buf, options, &eth, ip, &h, gopacket.Payload(payload)); err != nil {
		return fmt.Errorf("pcapng: %w", err)
	}

	// During the TLS handshake, packets wait for the secrets.
	l.packets++
	if l.deferring {
		l.deferred = append(l.deferred, deferredPacket{l.now, bytes.Clone(l.buf.Bytes())})
		return nil
	}
	if l.comment != "" && len(payload) > 0 {
		return l.out.commented(l.now, l.buf.Bytes(), l.comment)
	}
	return l.out.packet(l.now, l.buf.Bytes(), len(l.buf.Bytes()))
}

// hardwareAddr returns an invented Ethernet address for the sender of a direction. It is marked as locally
// administered.
func hardwareAddr(dir captures.Direction) net.HardwareAddr {
	return net.HardwareAddr{2, 0, 0, 0, 0, byte(dir) + 1}
}

// startTLS writes a TLS handshake: a client and a server of crypto/tls perform it over the link. version is the
// TLS version, name the SNI, and protocol the only ALPN protocol, or "". The secrets are written to the file
// before the packets of the handshake.
func (l *link) startTLS(version uint16, name, protocol string, cert tls.Certificate) error {
	var keys bytes.Buffer
	client := &tls.Config{
		ServerName: name,
		// Both ends are in this function.
		InsecureSkipVerify: true,

		MinVersion: version, MaxVersion: version, KeyLogWriter: &keys, DynamicRecordSizingDisabled: true,
	}
	server := &tls.Config{
		Certificates: []tls.Certificate{cert}, MinVersion: version, MaxVersion: version,
		SessionTicketsDisabled: true, DynamicRecordSizingDisabled: true,
	}

	// A single protocol makes the server choose it.
	if protocol != "" {
		client.NextProtos, server.NextProtos = []string{protocol}, []string{protocol}
	}
	l.deferring = true
	w := &tlsPipe{l: l}
	w.cond = sync.NewCond(&w.mu)
	ends := [2]*tls.Conn{tls.Client(&tlsPipeEnd{w, captures.Up}, client), tls.Server(&tlsPipeEnd{w, captures.Down}, server)}
	done := make(chan error, 1)
	go func() {
		err := ends[captures.Down].Handshake()
		w.fail(err)
		done <- err

		// The handshake runs between two goroutines.
	}()
	err := ends[captures.Up].Handshake()
	w.fail(err)
	if err = errors.Join(err, <-done); err != nil {
		return fmt.Errorf("pcapng: the TLS handshake cannot be written: %w", err)
	}
	w.handshakeDone = true
	l.deferring = false

	// Readers need the secrets before the packets.
	if err := l.out.secrets(keys.Bytes()); err != nil {
		return err
	}
	for _, p := range l.deferred {
		if err := l.out.packet(p.t, p.data, len(p.data)); err != nil {
			return err
		}
	}
	l.deferred = nil
	for dir := range l.ends {
		l.ends[dir] = ends[dir]
	}
	return nil
}

// A tlsPipe connects the synthesized TLS client and server during their handshake, and writes the bytes of both
// as packets. After the handshake, bytes are only written, not read.
type tlsPipe struct {
	// l is the TCP connection whose packets contain the written bytes.
	l *link
	// mu guards pending and err, and the writes to the connection.
	mu sync.Mutex
	// cond is signalled when bytes are added to pending, or the handshake fails.
	cond *sync.Cond
	// pending are the bytes written by each side that the other has not read.
	pending [2][]byte

	// err is the error of a failed handshake; nil otherwise.
	err error
	// handshakeDone means that the handshake has ended, so written bytes are no longer kept for the other
	// end.
	handshakeDone bool
}

// fail unblocks the other end with err if the handshake failed; nil is ignored.
func (w *tlsPipe) fail(err error) {
	if err == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	w.cond.Broadcast()
}

// A tlsPipeEnd is the net.Conn of one end of a tlsPipe.
type tlsPipeEnd struct {
	// w is the pipe that connects the two ends.
	w *tlsPipe
	// dir is the direction of the bytes that this end writes.
	dir captures.Direction
}

// Write writes p as packets, and passes it to the other end during the handshake.
func (e *tlsPipeEnd) Write(p []byte) (int, error) {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	if !e.w.handshakeDone {
		e.w.pending[e.dir] = append(e.w.pending[e.dir], p...)
		e.w.cond.Broadcast()
	}
	return segmentWriter{e.w.l, e.dir}.Write(p)
}

// Read returns bytes that the other end has written; it blocks until there are any.
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

// Close does nothing.
func (e *tlsPipeEnd) Close() error { return nil }

// LocalAddr returns this side's address.
func (e *tlsPipeEnd) LocalAddr() net.Addr { return net.TCPAddrFromAddrPort(e.w.l.addr[e.dir]) }

// RemoteAddr returns the other side's address.
func (e *tlsPipeEnd) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(e.w.l.addr[1-e.dir]) }

// SetDeadline does nothing.
func (e *tlsPipeEnd) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing.
func (e *tlsPipeEnd) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (e *tlsPipeEnd) SetWriteDeadline(time.Time) error { return nil }
