package pcap

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/decode"
)

// A tap records what passes over connections, at one of their ends.
type tap struct {
	mu    sync.Mutex
	conns []*tapConn
	keys  bytes.Buffer // as an NSS key log
}

// A tapConn is a connection whose bytes are recorded.
type tapConn struct {
	net.Conn
	tap    *tap
	client bool // which end it is
	events []tapEvent
}

type tapEvent struct {
	dir  captures.Direction
	t    time.Time
	data []byte // nil: the direction's end
}

// Write takes lines of the key log.
func (p *tap) Write(line []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys.Write(line)
}

func (p *tap) wrap(c net.Conn, client bool) net.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := &tapConn{Conn: c, tap: p, client: client}
	p.conns = append(p.conns, t)
	return t
}

func (c *tapConn) note(dir captures.Direction, p []byte) {
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	c.events = append(c.events, tapEvent{dir, time.Now(), bytes.Clone(p)})
}

func (c *tapConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	dir := captures.Up
	if c.client {
		dir = captures.Down
	}
	if n > 0 {
		c.note(dir, p[:n])
	}
	if err == io.EOF {
		c.note(dir, nil)
	}
	return n, err
}

func (c *tapConn) Write(p []byte) (int, error) {
	dir := captures.Down
	if c.client {
		dir = captures.Up
	}
	if len(p) > 0 {
		c.note(dir, p) // before the answer to it can be read
	}
	return c.Conn.Write(p)
}

// dial is for http.Transport.DialContext.
func (p *tap) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return p.wrap(c, true), nil
}

// relay listens, and passes what comes to addr and back.
func (p *tap) relay(t testing.TB, addr string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", addr)
			if err != nil {
				in.Close()
				continue
			}
			tapped := p.wrap(in, false)
			go func() { _, _ = io.Copy(out, tapped); _ = out.(*net.TCPConn).CloseWrite() }()
			go func() { _, _ = io.Copy(tapped, out); _ = in.(*net.TCPConn).CloseWrite() }()
		}
	}()
	return l.Addr().String()
}

// A rawPacket is a packet as it is written to a file.
type rawPacket struct {
	t    time.Time
	data []byte
	dir  captures.Direction
	size int // of its payload
}

// packets returns what was recorded as the packets of TCP connections.
func (p *tap) packets(t testing.TB, link linkType) []rawPacket {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []rawPacket
	for _, c := range p.conns {
		w := newPacketWriter(t, link, netip.MustParseAddrPort(c.RemoteAddr().String()), netip.MustParseAddrPort(c.LocalAddr().String()))
		if c.client {
			w.addr[0], w.addr[1] = w.addr[1], w.addr[0]
		}
		if len(c.events) == 0 {
			continue
		}
		w.open(c.events[0].t)
		for _, e := range c.events {
			w.send(e.dir, e.t, e.data)
		}
		last := c.events[len(c.events)-1].t
		w.close(captures.Up, last)
		w.close(captures.Down, last)
		all = append(all, w.out...)
	}
	slices.SortStableFunc(all, func(a, b rawPacket) int { return a.t.Compare(b.t) })
	return all
}

const mss = 1400

// A linkType is the number of a link layer in capture files.
type linkType uint16

const (
	linkNull     linkType = 0
	linkEthernet linkType = 1
	linkRawBSD   linkType = 12
	linkRaw      linkType = 101
	linkLoop     linkType = 108
	linkSLL      linkType = 113
	linkSLL2     linkType = 276
)

// A packetWriter makes the packets of one connection.
type packetWriter struct {
	t     testing.TB
	link  linkType
	addr  [2]netip.AddrPort // client, server
	seq   [2]uint32
	ended [2]bool
	out   []rawPacket
}

func newPacketWriter(t testing.TB, link linkType, client, server netip.AddrPort) *packetWriter {
	// The client's numbers wrap around soon.
	return &packetWriter{t: t, link: link, addr: [2]netip.AddrPort{client, server}, seq: [2]uint32{0xffff_ff00, 77}}
}

func (w *packetWriter) open(t time.Time) {
	w.packet(captures.Up, t, nil, func(h *layers.TCP) { h.SYN, h.ACK = true, false })
	w.seq[captures.Up]++
	w.packet(captures.Down, t, nil, func(h *layers.TCP) { h.SYN = true })
	w.seq[captures.Down]++
	w.packet(captures.Up, t, nil, nil)
}

// send sends data; nil closes the direction.
func (w *packetWriter) send(dir captures.Direction, t time.Time, data []byte) {
	if data == nil {
		w.close(dir, t)
	}
	for part := range slices.Chunk(data, mss) {
		w.packet(dir, t, part, func(h *layers.TCP) { h.PSH = true })
		w.seq[dir] += uint32(len(part))
	}
}

func (w *packetWriter) close(dir captures.Direction, t time.Time) {
	if w.ended[dir] {
		return
	}
	w.ended[dir] = true
	w.packet(dir, t, nil, func(h *layers.TCP) { h.FIN = true })
	w.seq[dir]++
}

func (w *packetWriter) packet(dir captures.Direction, t time.Time, payload []byte, set func(*layers.TCP)) {
	w.t.Helper()
	src, dst := w.addr[dir], w.addr[1-dir]
	h := &layers.TCP{
		SrcPort: layers.TCPPort(src.Port()), DstPort: layers.TCPPort(dst.Port()),
		Seq: w.seq[dir], Ack: w.seq[1-dir], ACK: true, Window: 65535,
	}
	if set != nil {
		set(h)
	}
	var below []gopacket.SerializableLayer
	eth := layers.EthernetTypeIPv4
	if src.Addr().Is4() {
		ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: src.Addr().AsSlice(), DstIP: dst.Addr().AsSlice()}
		below = append(below, ip)
		_ = h.SetNetworkLayerForChecksum(ip)
	} else {
		ip := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolTCP, SrcIP: src.Addr().AsSlice(), DstIP: dst.Addr().AsSlice()}
		below = append(below, ip)
		_ = h.SetNetworkLayerForChecksum(ip)
		eth = layers.EthernetTypeIPv6
	}
	buf := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, append(below, h, gopacket.Payload(payload))...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.out = append(w.out, rawPacket{t, append(linkHead(w.link, eth), buf.Bytes()...), dir, len(payload)})
}

// linkHead is what stands before the IP packet.
func linkHead(link linkType, eth layers.EthernetType) []byte {
	switch link {
	case linkEthernet:
		return binary.BigEndian.AppendUint16(make([]byte, 12), uint16(eth))
	case linkSLL:
		return binary.BigEndian.AppendUint16(make([]byte, 14), uint16(eth))
	case linkSLL2:
		return append(binary.BigEndian.AppendUint16(nil, uint16(eth)), make([]byte, 18)...)
	case linkNull, linkLoop:
		family := uint32(layers.ProtocolFamilyIPv4)
		if eth == layers.EthernetTypeIPv6 {
			family = uint32(layers.ProtocolFamilyIPv6Linux)
		}
		if link == linkLoop {
			return binary.BigEndian.AppendUint32(nil, family)
		}
		return binary.LittleEndian.AppendUint32(nil, family)
	}
	return nil
}

// pcapng writes a file with its secrets.
func pcapng(t testing.TB, link linkType, list []rawPacket, keys []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := pcapgo.NewNgWriterInterface(&out, pcapgo.NgInterface{LinkType: layers.LinkType(link), TimestampResolution: 9}, pcapgo.DefaultNgWriterOptions)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if len(keys) > 0 {
		out.Write(secretsBlock(keys))
	}
	for _, p := range list {
		if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: p.t, CaptureLength: len(p.data), Length: len(p.data)}, p.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// secretsBlock makes a pcapng block that holds a key log.
func secretsBlock(keys []byte) []byte {
	const blockSecrets, secretsTLS = 0x0000000a, 0x544c534b
	n := uint32(20 + (len(keys)+3)&^3)
	b := binary.LittleEndian.AppendUint32(nil, blockSecrets)
	b = binary.LittleEndian.AppendUint32(b, n)
	b = binary.LittleEndian.AppendUint32(b, secretsTLS)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(keys)))
	b = append(b, keys...)
	b = append(b, make([]byte, (4-len(keys)%4)%4)...)
	return binary.LittleEndian.AppendUint32(b, n)
}

// An imported is what became of a file.
type imported struct {
	store     *store.Store
	exchanges []*captures.Exchange
	conns     []Connection
	sum       Summary
}

// importFile imports a file; keys may be nil.
func importFile(t testing.TB, file, keys []byte) *imported {
	t.Helper()
	got, err := tryImport(t, file, keys)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func tryImport(t testing.TB, file, keys []byte) (*imported, error) {
	t.Helper()
	store, err := store.Create(filepath.Join(t.TempDir(), "import.uwc"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	log := new(KeyLog)
	if err := log.Read(bytes.NewReader(keys)); err != nil {
		t.Fatal(err)
	}
	got := &imported{store: store}
	var impErr error
	got.sum, impErr = Import(context.Background(), bytes.NewReader(file), Options{
		Store: store, Keys: log, Connection: func(c Connection) { got.conns = append(got.conns, c) },
	})
	if err := store.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	got.exchanges = exchangesOf(t, store)
	return got, impErr
}

func exchangesOf(t testing.TB, store *store.Store) (all []*captures.Exchange) {
	t.Helper()
	for ex, err := range store.Exchanges(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ex)
	}
	slices.SortStableFunc(all, func(a, b *captures.Exchange) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID))
	})
	return all
}

func bodyOf(t testing.TB, store *store.Store, id int64, dir captures.Direction) []byte {
	t.Helper()
	var out []byte
	for c, err := range store.Chunks(context.Background(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Dir == dir {
			out = append(out, c.Data...)
		}
	}
	return out
}

// A frame is what tests compare of a decoded frame.
type frame struct {
	Flags uint8
	Data  string
}

func framesOf(t testing.TB, store *store.Store, id int64) (frames [2][]frame) {
	t.Helper()
	ex, err := decode.Decode(context.Background(), store, id, decode.Options{NoTrees: true})
	if err != nil {
		t.Fatal(err)
	}
	if ex.Err != nil {
		t.Fatalf("%s: %v; %+v", store.Path, ex.Err, ex.Exchange)
	}
	for i := range ex.Frames {
		f := &ex.Frames[i]
		frames[f.Dir] = append(frames[f.Dir], frame{uint8(f.Flags), string(f.Data)})
	}
	return frames
}

// clientTLS is a client's configuration that logs its keys to the tap.
func (p *tap) clientTLS(c *tls.Config) *tls.Config {
	c = c.Clone()
	c.KeyLogWriter = p
	return c
}

// A line is what one side sends; what the other sends stands behind it.
type line struct {
	dir  captures.Direction
	text string
}

// conversation makes the packets of a connection over IPv6, a millisecond apart.
func conversation(t testing.TB, lines ...line) []rawPacket {
	w := newPacketWriter(t, linkEthernet, netip.MustParseAddrPort("[fd00::1]:40000"), netip.MustParseAddrPort("[fd00::2]:80"))
	at := time.Unix(1_700_000_000, 123_456_789)
	w.open(at)
	for _, l := range lines {
		at = at.Add(time.Millisecond)
		w.send(l.dir, at, []byte(l.text))
	}
	w.close(captures.Up, at)
	w.close(captures.Down, at)
	return w.out
}

// fuzzStore is a capture that takes what a fuzz target imports.
func fuzzStore(f *testing.F) *store.Store {
	store, err := store.Create(filepath.Join(f.TempDir(), "fuzz.uwc"), store.Options{KeepSecrets: true})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = store.Close() })
	return store
}

// fuzzConn is a connection whose session is fed by hand.
func fuzzConn(store *store.Store, keys *KeyLog) *conn {
	c := &conn{
		store: store, keys: keys, budget: &budget{available: maxBuffered}, onError: func(error) {},
		addrs: [2]netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:2")},
	}
	c.session = newSession(c, false, 0)
	return c
}

// feedBoth feeds both directions in steps, and ends them.
func feedBoth(t *testing.T, c *conn, toServer, toClient []byte, step uint8) {
	at := time.Unix(1_700_000_000, 0)
	n := int(step) + 1
	for len(toServer)+len(toClient) > 0 {
		k := min(n, len(toServer))
		c.session.feed(captures.Up, at, toServer[:k])
		toServer = toServer[k:]
		k = min(n, len(toClient))
		c.session.feed(captures.Down, at, toClient[:k])
		toClient = toClient[k:]
		at = at.Add(time.Microsecond)
	}
	c.session.end(captures.Up, ending{t: at})
	c.session.end(captures.Down, ending{t: at})
	if c.budget.available != maxBuffered {
		t.Errorf("%d bytes are still held", maxBuffered-c.budget.available)
	}
}

// bytesOf returns what both sides of a tapped connection sent.
func bytesOf(p *tap) (both [2][]byte) {
	for _, e := range p.conns[0].events {
		both[e.dir] = append(both[e.dir], e.data...)
	}
	return both
}

// cutIP makes fragments of the Ethernet frame of an IP packet.
func cutIP(t testing.TB, p rawPacket, id uint32, size int) (out []rawPacket) {
	t.Helper()
	const ethernet, v6header = 14, 40
	ip := p.data[ethernet:]
	head, body := ethernet+20, ip[20:]
	if ip[0]>>4 == 6 {
		head, body = ethernet+v6header, ip[v6header:]
	}
	if len(body) <= size {
		return []rawPacket{p}
	}
	for at := 0; at < len(body); at += size {
		part := body[at:min(len(body), at+size)]
		more := at+size < len(body)
		f := bytes.Clone(p.data[:head])
		if ip[0]>>4 == 4 {
			binary.BigEndian.PutUint16(f[ethernet+2:], uint16(20+len(part)))
			binary.BigEndian.PutUint16(f[ethernet+4:], uint16(id))
			flags := uint16(at / 8)
			if more {
				flags |= 1 << 13
			}
			binary.BigEndian.PutUint16(f[ethernet+6:], flags)
		} else {
			const fragmentHeader = 44
			binary.BigEndian.PutUint16(f[ethernet+4:], uint16(8+len(part)))
			ext := []byte{f[ethernet+6], 0}
			f[ethernet+6] = fragmentHeader
			offset := uint16(at)
			if more {
				offset |= 1
			}
			ext = binary.BigEndian.AppendUint16(ext, offset)
			f = append(f, binary.BigEndian.AppendUint32(ext, id)...)
		}
		out = append(out, rawPacket{p.t, append(f, part...), p.dir, p.size})
	}
	return out
}
