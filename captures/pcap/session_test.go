package pcap

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"unwire/captures"
)

// reasons are the connections' reasons, the first words of each.
func reasons(conns []Connection) (list []string) {
	for _, c := range conns {
		for _, u := range c.Undecoded {
			list = append(list, u.Dir+": "+u.Reason)
		}
	}
	return list
}

func expectReason(t *testing.T, got *imported, want string) {
	t.Helper()
	if list := reasons(got.conns); !slices.ContainsFunc(list, func(r string) bool { return strings.Contains(r, want) }) {
		t.Errorf("reasons %q, want one with %q", list, want)
	}
	if got.sum.Undecoded == 0 {
		t.Errorf("summary %+v", got.sum)
	}
}

// TestLoss leaves out a packet of the server in the third call: what came
// before it is kept, and the loss is listed.
func TestLoss(t *testing.T) {
	t.Parallel()
	for _, tr := range transports() {
		t.Run(tr.name, func(t *testing.T) {
			s, c, p := tr.start(t, http.HandlerFunc(serve))
			ask(t, c, s.URL, 5)
			list := p.packets(t, linkEthernet)
			sent, lost := 0, -1
			for i, pk := range list {
				if pk.dir != captures.Down {
					continue
				}
				if sent += pk.size; sent > 8_000 && pk.size == mss { // in the fourth, which has 9,000 bytes
					lost = i
					break
				}
			}
			if lost < 0 {
				t.Fatal("no packet to lose")
			}
			got := importFile(t, pcapng(t, linkEthernet, slices.Delete(slices.Clone(list), lost, lost+1), p.keys.Bytes()), nil)
			expectReason(t, got, "down: loss: 1400 bytes at offset ")
			if len(got.conns) != 1 || len(got.conns[0].Gaps) != 1 || got.conns[0].Gaps[0].Bytes != mss || got.conns[0].Gaps[0].Dir != "down" {
				t.Errorf("connections %+v", got.conns)
			}
			if len(got.exchanges) != 5 {
				t.Fatalf("%d exchanges", len(got.exchanges))
			}
			for i, ex := range got.exchanges {
				up := bodyOf(t, got.store, ex.ID, captures.Up)
				if i%3 != 2 && string(up) != strings.Repeat("x", i*3000)+"|part two" {
					t.Errorf("exchange %d: request of %d bytes", i, len(up))
				}
				switch {
				case i < 3 && (ex.Outcome != captures.Complete || ex.Status == 0):
					t.Errorf("exchange %d, before the loss: %+v", i, ex)
				case i >= 3 && (ex.Outcome != captures.Incomplete || !strings.Contains(ex.Error, "loss: 1400 bytes")):
					t.Errorf("exchange %d, after the loss: %+v", i, ex)
				}
			}
		})
	}
}

// TestWithoutKeys lists why TLS cannot be read.
func TestWithoutKeys(t *testing.T) {
	for _, tr := range transports()[2:5] {
		s, c, p := tr.start(t, http.HandlerFunc(serve))
		ask(t, c, s.URL, 2)
		list := p.packets(t, linkEthernet)
		got := importFile(t, pcapng(t, linkEthernet, list, nil), nil)
		expectReason(t, got, "the key log has no key for this TLS session (client random ")
		if len(got.exchanges) != 0 || len(got.conns) != 1 || got.conns[0].TLS != tr.version {
			t.Errorf("%d exchanges, connections %+v", len(got.exchanges), got.conns)
		}
		// A capture that began too late.
		got = importFile(t, pcapng(t, linkEthernet, list[9:], p.keys.Bytes()), nil)
		expectReason(t, got, "the beginning of the connection, with the TLS handshake, was not recorded")
		// The server's side was not captured at all.
		oneSide := slices.DeleteFunc(slices.Clone(list), func(pk rawPacket) bool { return pk.dir == captures.Down })
		got = importFile(t, pcapng(t, linkEthernet, oneSide, p.keys.Bytes()), nil)
		expectReason(t, got, "the server's part of the TLS handshake (ServerHello) was not recorded")
		// A key that is not this session's.
		keys := []byte(strings.NewReplacer("0", "1", "a", "b").Replace(lastFields(p.keys.String())))
		got = importFile(t, pcapng(t, linkEthernet, list, nil), keys)
		expectReason(t, got, "down: ")
		if len(got.exchanges) != 0 {
			t.Errorf("a wrong key opened %d exchanges", len(got.exchanges))
		}
	}
}

// lastFields spoils the secrets of a key log and leaves the rest.
func lastFields(log string) string {
	var b strings.Builder
	for line := range strings.Lines(log) {
		f := strings.Fields(line)
		b.WriteString(f[0] + " " + f[1] + " " + strings.Repeat("ab", len(f[2])/2) + "\n")
	}
	return b.String()
}

// TestOneSided keeps what one side of a conversation in clear tells.
func TestOneSided(t *testing.T) {
	for _, tr := range transports()[5:] {
		s, c, p := tr.start(t, http.HandlerFunc(serve))
		ask(t, c, s.URL, 2)
		list := p.packets(t, linkEthernet)
		for _, missing := range []captures.Direction{captures.Up, captures.Down} {
			rest := slices.DeleteFunc(slices.Clone(list), func(pk rawPacket) bool { return pk.dir == missing })
			got := importFile(t, pcapng(t, linkEthernet, rest, nil), nil)
			if len(got.exchanges) != 2 {
				t.Fatalf("%s without %s: %d exchanges; %+v", tr.name, missing, len(got.exchanges), got.conns)
			}
			for i, ex := range got.exchanges {
				if ex.Outcome != captures.Incomplete || ex.Error == "" {
					t.Errorf("%s without %s: %+v", tr.name, missing, ex)
				}
				up, down := bodyOf(t, got.store, ex.ID, captures.Up), bodyOf(t, got.store, ex.ID, captures.Down)
				body := strings.Repeat("x", i*3000)
				if missing == captures.Up && string(down) != "<"+body+"><part two>" || missing == captures.Down && string(up) != body+"|part two" {
					t.Errorf("%s without %s: bodies of %d and %d bytes", tr.name, missing, len(up), len(down))
				}
			}
		}
	}
}

// TestTornOff imports a file that ends within a packet: what is before it counts.
func TestTornOff(t *testing.T) {
	tr := transports()[5]
	s, c, p := tr.start(t, http.HandlerFunc(serve))
	ask(t, c, s.URL, 4)
	file := pcapng(t, linkEthernet, p.packets(t, linkEthernet), nil)
	got, err := tryImport(t, file[:len(file)/2], nil)
	if err == nil || !strings.Contains(err.Error(), "unexpected EOF") || !strings.Contains(err.Error(), "packet at 0x") {
		t.Errorf("error %v", err)
	}
	if len(got.exchanges) == 0 {
		t.Error("nothing was kept")
	}
}
