package pcap

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
	"pgregory.net/rapid"

	"unwire/captures"
	"unwire/captures/pcap/packet"
)

const shortCall = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n"

func writer(t testing.TB) *packetWriter {
	return newPacketWriter(t, linkEthernet, netip.MustParseAddrPort("10.0.0.1:40000"), netip.MustParseAddrPort("10.0.0.2:80"))
}

// TestPortsUsedAgain has two connections between the same ports, the first of
// them reset.
func TestPortsUsedAgain(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	first, second := writer(t), writer(t)
	first.open(at)
	first.send(captures.Up, at, []byte(shortCall))
	first.send(captures.Down, at, []byte("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"))
	first.packet(captures.Down, at.Add(time.Second), nil, func(h *layers.TCP) { h.RST = true })
	second.seq = [2]uint32{5000, 6000}
	second.open(at.Add(time.Minute))
	second.send(captures.Up, at.Add(time.Minute), []byte(shortCall))
	second.send(captures.Down, at.Add(time.Minute), []byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole"))
	got := importFile(t, pcapng(t, linkEthernet, append(first.out, second.out...), nil), nil)
	if len(got.exchanges) != 2 || len(got.conns) != 2 {
		t.Fatalf("%d exchanges, %+v", len(got.exchanges), got.conns)
	}
	if ex := got.exchanges[0]; ex.Outcome != captures.Reset || string(bodyOf(t, got.store, ex.ID, captures.Down)) != "half" || ex.Duration != time.Second {
		t.Errorf("%+v", ex)
	}
	if ex := got.exchanges[1]; ex.Outcome != captures.Complete || string(bodyOf(t, got.store, ex.ID, captures.Down)) != "whole" {
		t.Errorf("%+v", ex)
	}
}

// TestSnapLength imports packets of which only the beginning was kept.
func TestSnapLength(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	w := writer(t)
	w.open(at)
	w.send(captures.Up, at, []byte(shortCall))
	w.send(captures.Down, at, []byte("HTTP/1.1 200 OK\r\nContent-Length: 1300\r\n\r\n"+strings.Repeat("x", 1300)))
	w.close(captures.Up, at)
	w.close(captures.Down, at)
	var file bytes.Buffer
	out := pcapgo.NewWriter(&file)
	if err := out.WriteFileHeader(300, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	for _, p := range w.out {
		kept := p.data[:min(300, len(p.data))]
		if err := out.WritePacket(gopacket.CaptureInfo{Timestamp: p.t, CaptureLength: len(kept), Length: len(p.data)}, kept); err != nil {
			t.Fatal(err)
		}
	}
	got := importFile(t, file.Bytes(), nil)
	expectReason(t, got, "down: loss: ")
	if got.sum.Cut != 1 || len(got.exchanges) != 1 || got.exchanges[0].Outcome != captures.Incomplete || got.exchanges[0].BytesDown == 0 {
		t.Errorf("%+v %+v", got.sum, got.exchanges)
	}
}

// A sink keeps what a half hands on.
type sink struct {
	got   []byte
	gaps  []gap
	ended bool
	last  time.Time
	back  bool // a time was before another
}

func (s *sink) data(t time.Time, p []byte) {
	s.back = s.back || t.Before(s.last)
	s.last = t
	s.got = append(s.got, p...)
}
func (s *sink) gap(g gap)               { s.gaps = append(s.gaps, g) }
func (s *sink) end(_ time.Time, _ bool) { s.ended = true }

// TestReassembly cuts a text into segments that overlap, repeat and come in any
// order: it comes out as it was, and nothing stays held.
func TestReassembly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(t, "text")
		first := rapid.Uint32().Draw(t, "isn")
		withSYN := rapid.Bool().Draw(t, "syn")
		segs := []packet.Segment{{Seq: first + 1 + uint32(len(text)), FIN: true}}
		if withSYN {
			segs = append(segs, packet.Segment{Seq: first, SYN: true})
		}
		for at := 0; at < len(text); {
			n := rapid.IntRange(1, 40).Draw(t, "n")
			back := rapid.IntRange(0, min(at, 30)).Draw(t, "back")
			end := min(len(text), at+n)
			for range rapid.IntRange(1, 2).Draw(t, "times") {
				segs = append(segs, packet.Segment{Seq: first + 1 + uint32(at-back), Data: text[at-back : end]})
			}
			at = end
		}
		segs = rapid.Permutation(segs).Draw(t, "order")
		out := new(sink)
		h := tcpStream{out: out, budget: &budget{available: 1 << 30}}
		for i := range segs {
			segs[i].Time = time.Unix(int64(i), 0)
			h.addSegment(&segs[i])
		}
		h.flush(time.Unix(1000, 0))
		if !bytes.Equal(out.got, text) || len(out.gaps) > 0 || !out.ended || out.back {
			t.Fatalf("got %d of %d bytes, gaps %v, ended %v, times back %v", len(out.got), len(text), out.gaps, out.ended, out.back)
		}
		if h.budget.available != 1<<30 || h.queueCost != 0 {
			t.Fatalf("%d bytes are still held", 1<<30-h.budget.available)
		}
	})
}
