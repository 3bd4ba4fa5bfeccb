package pcap

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"unwire/captures"
)

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

// TestFragments reads connections over IPv4 and IPv6 whose packets are in
// fragments, out of order, some twice; then one fragment is missing.
func TestFragments(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789abcdef"), 600)
	for _, addrs := range [][2]string{{"10.0.0.1:40000", "10.0.0.2:80"}, {"[fd00::1]:40000", "[fd00::2]:80"}} {
		w := newPacketWriter(t, linkEthernet, netip.MustParseAddrPort(addrs[0]), netip.MustParseAddrPort(addrs[1]))
		at := time.Unix(1_700_000_000, 0)
		w.open(at)
		w.send(captures.Up, at, []byte("GET /a HTTP/1.1\r\nHost: h\r\n\r\n"))
		w.send(captures.Down, at, append([]byte("HTTP/1.1 200 OK\r\nContent-Length: 9600\r\n\r\n"), body...))
		w.close(captures.Up, at)
		w.close(captures.Down, at)
		var list []rawPacket
		for i, p := range w.out {
			list = append(list, cutIP(t, p, uint32(i), 504)...)
		}
		r := rand.New(rand.NewPCG(1, 2))
		shuffled := append(slices.Clone(list), list[7:12]...)
		r.Shuffle(len(shuffled)-1, func(i, j int) { shuffled[i+1], shuffled[j+1] = shuffled[j+1], shuffled[i+1] })
		for name, order := range map[string][]rawPacket{"in order": list, "shuffled": shuffled} {
			got := importFile(t, pcapng(t, linkEthernet, order, nil), nil)
			if len(got.exchanges) != 1 || got.exchanges[0].Outcome != captures.Complete || !bytes.Equal(bodyOf(t, got.store, 1, captures.Down), body) {
				t.Errorf("%s: %+v %+v", name, got.conns, got.sum)
			}
			if name == "in order" && got.sum.Fragments != 0 {
				t.Errorf("%d fragments are left", got.sum.Fragments)
			}
		}
		lost := slices.IndexFunc(list, func(p rawPacket) bool { return p.dir == captures.Down && len(p.data) > 500 })
		got := importFile(t, pcapng(t, linkEthernet, slices.Delete(slices.Clone(list), lost+4, lost+5), nil), nil)
		if got.sum.Fragments != 2 || len(got.conns) != 1 || len(got.conns[0].Gaps) != 1 || got.conns[0].Gaps[0].Bytes != mss {
			t.Errorf("one fragment lost: %+v %+v", got.sum, got.conns)
		}
	}
}

// TestQUIC counts datagrams of HTTP/3.
func TestQUIC(t *testing.T) {
	udp := func(port uint16, payload ...byte) rawPacket {
		p := binary.BigEndian.AppendUint16(nil, 40000)
		p = binary.BigEndian.AppendUint16(p, port)
		p = append(binary.BigEndian.AppendUint16(p, uint16(8+len(payload))), 0, 0)
		p = append(p, payload...)
		ip := append([]byte{0x45, 0, 0, byte(20 + len(p)), 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2}, p...)
		return rawPacket{time.Unix(1, 0), append(linkHead(linkEthernet, 0x0800), ip...), captures.Up, len(p)}
	}
	got := importFile(t, pcapng(t, linkEthernet, []rawPacket{
		udp(443, 0xc0, 0, 0, 0, 1, 8), udp(443, 0x41, 2, 3, 4, 5), udp(8443, 0xc3, 0, 0, 0, 1, 8), udp(8443, 0x41, 2, 3, 4, 5), udp(53, 0xc0, 1, 2, 3, 4, 5), udp(443, 1),
	}, nil), nil)
	if got.sum.QUIC != 3 || got.sum.NotTCP != 3 {
		t.Errorf("%+v", got.sum)
	}
}
