package pcap

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"unwire/captures"
	"unwire/captures/store"
)

// A liveFile is a file of packets, and a key log, that grow while they are imported.
type liveFile struct {
	t       *testing.T
	began   time.Time
	packets bytes.Buffer
	all     bytes.Buffer // that were added
	keys    bytes.Buffer
	store   *store.Store
	steps   []liveStep // in the order of time
}

// A liveStep is what happens at a time from the beginning.
type liveStep struct {
	at time.Duration
	do func(f *liveFile)
}

// Read reads packets.
func (f *liveFile) Read(p []byte) (int, error) { return f.packets.Read(p) }

// wait lets time pass, and takes the steps that are due. After the last one nothing more
// comes.
func (f *liveFile) wait(d time.Duration) bool {
	time.Sleep(d)
	for len(f.steps) > 0 && time.Since(f.began) >= f.steps[0].at {
		f.steps[0].do(f)
		f.steps = f.steps[1:]
	}
	return len(f.steps) > 0
}

// add returns a step that adds packets, as if they were sent at the step's time.
func (f *liveFile) add(at time.Duration, packets []rawPacket) liveStep {
	return liveStep{at, func(f *liveFile) {
		list := slices.Clone(packets)
		first := list[0].t
		for i := range list {
			list[i].t = time.Now().Add(list[i].t.Sub(first) / 1000)
		}
		file := pcapng(f.t, linkEthernet, list, nil)
		f.packets.Write(file)
		f.all.Write(file)
	}}
}

// summary returns the exchanges that are in the capture now.
func (f *liveFile) summary() string {
	f.t.Helper()
	if err := f.store.Flush(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	var list []string
	for _, ex := range exchangesOf(f.t, f.store) {
		text := strings.TrimSpace(fmt.Sprintf("%s %d", ex.Method, ex.Status))
		for _, dir := range []captures.Direction{captures.Up, captures.Down} {
			if body := bodyOf(f.t, f.store, ex.ID, dir); len(body) > 0 && len(body) < 30 {
				text += fmt.Sprintf(" %s=%q", dir, body)
			}
		}
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}

// expect returns a step that wants these exchanges.
func expect(at time.Duration, want string) liveStep {
	return liveStep{at, func(f *liveFile) {
		f.t.Helper()
		if got := f.summary(); got != want {
			f.t.Errorf("after %v: %s, want %s", at, got, want)
		}
	}}
}

// runLive imports a file that grows by steps, with a clock of its own, and returns what
// became of its connections.
func runLive(t *testing.T, steps func(f *liveFile) []liveStep) (conns []Connection) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Create(filepath.Join(t.TempDir(), "live.uwc"), store.Options{NoAdditions: true})
		if err != nil {
			t.Fatal(err)
		}
		f := &liveFile{t: t, store: s, began: time.Now()}
		f.steps = steps(f)
		_, err = Import(t.Context(), f, Options{
			Store: s, Connection: func(c Connection) { conns = append(conns, c) },
			Live: &Live{Wait: f.wait, KeyLog: &f.keys, Again: func() (io.Reader, error) { return &f.all, nil }},
		})
		if err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return conns
}

// TestLiveKeys: bytes wait for keys that are logged after the packets, even of
// connections that have ended; a line may come in two parts.
func TestLiveKeys(t *testing.T) {
	for _, tr := range []transport{transports()[0], transports()[2], transports()[3], transports()[4]} {
		server, client, p := tr.start(t, http.HandlerFunc(serve))
		ask(t, client, server.URL, 1)
		client.CloseIdleConnections()
		list, keys := p.packets(t, linkEthernet), p.keys.Bytes()
		conns := runLive(t, func(f *liveFile) []liveStep {
			return []liveStep{
				f.add(0, list),
				expect(3*time.Second, ""),
				{4 * time.Second, func(f *liveFile) { f.keys.Write(keys[:len(keys)-50]) }},
				expect(4500*time.Millisecond, ""),
				{5 * time.Second, func(f *liveFile) { f.keys.Write(keys[len(keys)-50:]) }},
				expect(5500*time.Millisecond, `POST 202 up="|part two" down="<><part two>"`),
			}
		})
		if len(conns) != 1 || len(conns[0].Undecoded) > 0 || conns[0].NoKey {
			t.Errorf("%s: %+v", tr.name, conns)
		}
	}
}

// TestLiveKeysTooLate: what was too much to wait for keys is read again in the end.
func TestLiveKeysTooLate(t *testing.T) {
	const size = 12 << 20
	server, client, p := transports()[4].start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.CopyN(w, zeros{}, size)
	}))
	res, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	list := p.packets(t, linkEthernet)
	conns := runLive(t, func(f *liveFile) []liveStep {
		return []liveStep{
			f.add(0, conversation(t, line{captures.Up, "\x00another connection"})),
			f.add(100*time.Millisecond, list),
			expect(5*time.Second, `0 up="\x00another connection"`),
			{6 * time.Second, func(f *liveFile) { f.keys.Write(p.keys.Bytes()) }},
			expect(7*time.Second, `0 up="\x00another connection"`),
		}
	})
	if len(conns) != 2 || len(conns[1].Undecoded) > 0 || conns[1].NoKey || conns[1].Exchanges != 1 || conns[1].Number != 2 || conns[1].BytesDown < size {
		t.Errorf("%+v", conns)
	}
}

// TestLiveWithoutKeys: a connection whose keys never come is reported in the end.
func TestLiveWithoutKeys(t *testing.T) {
	server, client, p := transports()[4].start(t, http.HandlerFunc(serve))
	ask(t, client, server.URL, 1)
	list := p.packets(t, linkEthernet)
	conns := runLive(t, func(f *liveFile) []liveStep {
		return []liveStep{f.add(0, list), expect(time.Minute, "")}
	})
	if len(conns) != 1 || !conns[0].NoKey || len(conns[0].Undecoded) != 1 || !strings.Contains(conns[0].Undecoded[0].Reason, "no key for this TLS session") {
		t.Errorf("%+v", conns)
	}
}

// TestLiveWaits: what does not come is waited for no longer than a second or so, on
// connections that stay open.
func TestLiveWaits(t *testing.T) {
	open := func(lines ...line) []rawPacket { return withoutEnds(conversation(t, lines...)) }
	without := func(list []rawPacket, size int) []rawPacket {
		i := slices.IndexFunc(list, func(p rawPacket) bool { return p.size == size })
		return slices.Delete(list, i, i+1)
	}
	const soon, late = 200 * time.Millisecond, 1400 * time.Millisecond
	for name, c := range map[string]struct {
		packets    []rawPacket
		soon, late string
	}{
		"server first": {open(line{captures.Down, "220 hi\r\n"}), "", `0 down="220 hi\r\n"`},
		"both at once": {open(line{captures.Down, "220 hi\r\n"}, line{captures.Up, "QUIT\r\n"}), `0 up="QUIT\r\n" down="220 hi\r\n"`, `0 up="QUIT\r\n" down="220 hi\r\n"`},
		"a segment is missing": {
			without(open(line{captures.Up, "\x00one"}, line{captures.Up, "lost!"}, line{captures.Up, "three"}), 5),
			`0 up="\x00one"`, `0 up="\x00onethree"`,
		},
		"open before": {open(line{captures.Up, "\x00one"}, line{captures.Up, "two"})[3:], "", `0 up="\x00onetwo"`},
		"the request is missing": {
			without(open(line{captures.Up, "GET /"}, line{captures.Down, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"}), 5),
			"", `200 down="hi"`,
		},
		"a request line that stops": {open(line{captures.Up, "WHAT IS"}), "", `0 up="WHAT IS"`},
	} {
		t.Run(name, func(t *testing.T) {
			runLive(t, func(f *liveFile) []liveStep {
				return []liveStep{f.add(0, c.packets), expect(soon, c.soon), expect(late, c.late)}
			})
		})
	}
}

// withoutEnds leaves out how a conversation ends.
func withoutEnds(list []rawPacket) []rawPacket { return list[:len(list)-2] }

// TestLiveReset: a stream that the client reset has ended soon, though the connection
// goes on.
func TestLiveReset(t *testing.T) {
	unblock, gone := make(chan struct{}), make(chan struct{})
	defer close(unblock)
	server, client, p := transports()[6].start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
			close(gone)
		case <-unblock:
		}
	}))
	res, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	select {
	case <-gone: // RST_STREAM has come
	case <-time.After(time.Minute):
		t.Fatal("the server did not hear of the reset")
	}
	list := withoutEnds(p.packets(t, linkEthernet))
	runLive(t, func(f *liveFile) []liveStep {
		return []liveStep{f.add(0, list), {2 * time.Second, func(f *liveFile) {
			_ = f.summary()
			for _, ex := range exchangesOf(t, f.store) {
				if ex.Outcome != captures.Canceled {
					t.Errorf("%+v", ex)
				}
			}
		}}}
	})
}

// TestLiveMemory: bytes that wait for keys are bounded, and leave room for others.
func TestLiveMemory(t *testing.T) {
	im := &importer{options: Options{Keys: new(KeyLog), Live: &Live{}}, conns: map[pair]*conn{}, budget: &budget{available: maxBuffered}}
	server, client, p := transports()[3].start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.CopyN(w, zeros{}, 3<<20)
	}))
	res, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	both := bytesOf(p)
	least := im.budget.available
	for i := range 40 {
		c := im.newConnection(pair{{}, {}}, time.Unix(int64(i), 0))
		c.clientSide = 0
		c.session.feed(captures.Up, time.Unix(1, 0), both[captures.Up])
		for part := range slices.Chunk(both[captures.Down], mss) {
			c.session.feed(captures.Down, time.Unix(1, 0), part)
			least = min(least, im.budget.available)
		}
	}
	if least < reservedForOthers-1<<20 {
		t.Errorf("%d of %d bytes are left for other connections", least, maxBuffered)
	}
	if least > maxBuffered*3/4 {
		t.Errorf("nothing waited: %d bytes are left", least)
	}
}

// zeros are without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
