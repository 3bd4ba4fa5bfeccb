package samples

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"unwire/captures"
	"unwire/captures/store"
)

// RecordTransports records exchanges drawn by rapid, of every transport: HTTP/1.0 to 2 with unusual request
// targets, WebSockets with and without their handshakes, TLS and TCP without HTTP, and relations between them.
// Each exchange begins at another time.
func RecordTransports(t *rapid.T, s *store.Store) {
	d := &drawer{t: t, s: s, at: time.Unix(1_700_000_000, 5).UTC()}
	for range rapid.IntRange(1, 8).Draw(t, "exchanges") {
		switch rapid.IntRange(0, 4).Draw(t, "transport") {
		case 0:
			d.http()
		case 1:
			d.handshake()
		case 2:
			d.webSocket(0)
		case 3:
			d.connection(captures.RawTLS)
		case 4:
			d.connection(captures.RawTCP)
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "relations") {
		of := rapid.Int64Range(1, d.last).Draw(t, "exchange")
		r := captures.Relation{Exchange: of, Kind: "replay of", Target: rapid.Int64Range(1, d.last).Draw(t, "target")}
		if rapid.Bool().Draw(t, "other capture") {
			r.Capture = "0123456789abcde\xff"
		}
		s.Relate(r)
	}
}

// A drawer records randomly drawn exchanges.
type drawer struct {
	// t is the property-based test whose generators draw the random values.
	t *rapid.T
	// s is the capture in which the exchanges are recorded.
	s *store.Store
	// at is the start time of the exchange drawn last; later exchanges do not start earlier.
	at   time.Time
	last int64 // exchange
}

// begin starts the recording of an exchange, with a later time than the previous one.
func (d *drawer) begin(ex captures.Exchange) captures.Recording {
	d.at = d.at.Add(time.Duration(rapid.IntRange(1, 2_000_000_000).Draw(d.t, "later")))
	ex.Started = d.at
	ex.Client, ex.Server, ex.Source = "10.1.0.1:4001", "10.0.0.9:8443", "proxy"
	if rapid.Bool().Draw(d.t, "process") {
		ex.Process = captures.Process{PID: rapid.IntRange(0, 1000).Draw(d.t, "pid"), Name: "node", Client: "connect-es", Version: "2.0"}
	}
	rec, err := d.s.Begin(ex)
	if err != nil {
		d.t.Fatal(err)
	}
	d.last = rec.ID()
	return rec
}

// end ends the exchange with a random outcome, at a time since its start.
func (d *drawer) end(rec captures.Recording, at time.Duration) {
	outcome := rapid.SampledFrom([]captures.Outcome{captures.Complete, captures.Complete, captures.Reset, captures.Canceled, captures.Incomplete}).Draw(d.t, "outcome")
	rec.EndAt(at+time.Duration(rapid.IntRange(0, 1_000_000).Draw(d.t, "end")), outcome, rapid.SampledFrom([]string{"", "why"}).Draw(d.t, "error"))
}

// http records a random HTTP exchange.
func (d *drawer) http() {
	rec := d.begin(captures.Exchange{
		Method: rapid.SampledFrom([]string{"GET", "POST", "OPTIONS"}).Draw(d.t, "method"),
		URL:    "http://api.example:81" + rapid.SampledFrom([]string{"", "/", "/a|b/../%2F//;\"<>[]{}?z=%zz&ä", "?q", "/p.v1.S/M"}).Draw(d.t, "target"),
		HTTP:   rapid.SampledFrom([]string{"1.0", "1.1", "2"}).Draw(d.t, "version"),
		RequestHeaders: captures.Headers{
			{Name: "zEBRA", Value: "1"}, {Name: "Host", Value: "api.example:81"}, {Name: "X", Value: "1"}, {Name: "x", Value: "\xff"}, {Name: "X", Value: ""},
		},
	})
	d.chunks(rec, captures.Up, 0)
	rec.Response(200, captures.Headers{{Name: "b", Value: "2"}, {Name: "A", Value: "1"}})
	d.end(rec, d.chunks(rec, captures.Down, 5))
}

// handshake records a handshake, and mostly the WebSocket that it opens.
func (d *drawer) handshake() {
	ex := captures.Exchange{
		Method: "GET", URL: "https://api.example/chat?a=1", HTTP: "1.1", TLS: captures.TLS{Version: "1.3", ServerName: "api.example"},
		RequestHeaders: captures.Headers{
			{Name: "Host", Value: "api.example"},
			{Name: "Upgrade", Value: "websocket"},
			{Name: "Connection", Value: "Upgrade"},
			{Name: "Sec-WebSocket-Key", Value: "dGhlIHNhbXBsZSBub25jZQ=="},
			{Name: "Sec-WebSocket-Version", Value: "13"},
		},
	}
	status := 101
	answer := captures.Headers{
		{Name: "Upgrade", Value: "websocket"},
		{Name: "Connection", Value: "Upgrade"},
		{Name: "Sec-WebSocket-Accept", Value: "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="},
		{Name: "Sec-WebSocket-Extensions", Value: "permessage-deflate"},
	}

	// Over HTTP/2, the handshake is an extended CONNECT (RFC 8441).
	if rapid.Bool().Draw(d.t, "h2") {
		ex.Method, ex.HTTP, status, answer = "CONNECT", "2", 200, captures.Headers{{Name: "sec-websocket-extensions", Value: "permessage-deflate"}}
		ex.RequestHeaders = captures.Headers{{Name: ":protocol", Value: "websocket"}, {Name: "sec-websocket-version", Value: "13"}}
		ex.TLS.ALPN = "h2"
	}
	rec := d.begin(ex)
	rec.Response(status, answer)
	rec.EndAt(time.Duration(rapid.IntRange(0, 1_000_000).Draw(d.t, "answered")), captures.Complete, "")
	if rapid.IntRange(0, 4).Draw(d.t, "opens") > 0 {
		d.webSocket(rec.ID())
	}
}

// webSocket records a WebSocket. handshake is the ID of the exchange that opened it, or 0.
func (d *drawer) webSocket(handshake int64) {
	rec := d.begin(captures.Exchange{
		Transport: captures.WebSocket, URL: "wss://api.example/chat?a=1", HTTP: "1.1", TLS: captures.TLS{Version: "1.3", ServerName: "api.example"},
	})
	if handshake != 0 {
		rec.Relate(captures.HandshakeOf, handshake)
	}
	var at time.Duration
	var open [2]captures.Opcode // of the message that goes on: its flags
	for range rapid.IntRange(0, 6).Draw(d.t, "parts") {
		at += time.Duration(rapid.IntRange(0, 1_000_000).Draw(d.t, "step"))
		dir := captures.Direction(rapid.IntRange(0, 1).Draw(d.t, "direction"))
		// Control frames may come between the parts of a message (RFC 6455, section 5.4).
		if rapid.IntRange(0, 3).Draw(d.t, "control") == 0 {
			op := rapid.SampledFrom([]captures.Opcode{captures.OpPing, captures.OpPong}).Draw(d.t, "kind")
			rec.MessageAt(dir, at, op|captures.OpFinal, rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(d.t, "payload"))
			continue
		}
		op := captures.OpContinuation
		if open[dir] == 0 {
			op = rapid.SampledFrom([]captures.Opcode{captures.OpText, captures.OpBinary, captures.OpText | captures.OpCompressed, captures.OpBinary | captures.OpCompressed}).Draw(d.t, "kind")
		}
		if open[dir] = 1; rapid.IntRange(0, 2).Draw(d.t, "goes on") > 0 {
			op, open[dir] = op|captures.OpFinal, 0
		}
		data := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(d.t, "data")
		if op.Kind() == captures.OpText && rapid.Bool().Draw(d.t, "text") {
			data = []byte(rapid.SampledFrom([]string{"", "hé", "\x00<&>\u2028", `{"a":1}`}).Draw(d.t, "words"))
		}
		rec.MessageAt(dir, at, op, data)
	}
	d.end(rec, at)
}

// connection records a connection without HTTP, whose first byte cannot begin TLS or HTTP.
func (d *drawer) connection(t captures.Transport) {
	ex := captures.Exchange{Transport: t, URL: string(t) + "://10.0.0.9:8443"}
	if t == captures.RawTLS {
		ex.TLS = captures.TLS{Version: "1.3", ServerName: "mqtt.example"}
		ex.URL = "tls://mqtt.example:8443"
	}
	rec := d.begin(ex)
	first := captures.Direction(rapid.IntRange(0, 1).Draw(d.t, "speaks first"))
	rec.ChunkAt(first, 0, []byte{0x10, byte(d.last)})
	d.end(rec, d.chunks(rec, 1-first, d.chunks(rec, first, 1)))
}

// chunks records random chunks of one direction, all of them after time at, and returns the time of the last.
func (d *drawer) chunks(rec captures.Recording, dir captures.Direction, at time.Duration) time.Duration {
	for range rapid.IntRange(0, 3).Draw(d.t, fmt.Sprintf("%s chunks", dir)) {
		at += time.Duration(rapid.IntRange(1, 1_000_000).Draw(d.t, "step"))
		rec.ChunkAt(dir, at, rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(d.t, "data"))
	}
	return at
}

// Renumbered returns the exchanges sorted by start time, with IDs from 1, because some formats change the
// order. Relations to exchanges that are not in all are omitted.
func Renumbered(all []Whole) []Whole {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b Whole) int { return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID)) })
	numbers := make(map[int64]int64)
	for i := range all {
		numbers[all[i].ID] = int64(i) + 1
	}
	for i := range all {
		w := &all[i]
		w.ID = int64(i) + 1
		w.Chunks = slices.Clone(w.Chunks)
		for j := range w.Chunks {
			w.Chunks[j].Exchange = w.ID
		}

		// A relation whose target was not exported disappears.
		var kept []captures.Relation
		for _, r := range w.Relations {
			r.Exchange = w.ID
			if r.Capture == "" {
				r.Target = numbers[r.Target]
			}
			if r.Target != 0 {
				kept = append(kept, r)
			}
		}
		slices.SortFunc(kept, func(a, b captures.Relation) int {
			return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Capture, b.Capture), cmp.Compare(a.Target, b.Target))
		})
		w.Relations = kept
	}
	return all
}
