// Package flow imports files of mitmproxy: each flow is one tnetstring. Package formats uses it; nothing is
// written in this format.
//
//	report, err := flow.Import(ctx, file, target)
//
// A scanner reads tnetstrings, and a conversion converts each flow to an exchange.
//
// Shape: a flow of HTTP consists of
//
//	version int; type "http"; error {msg, timestamp} or null
//	client_conn {peername or address [host, port]}
//	server_conn {peername or ip_address [host, port], sni, alpn, tls_version, cipher}
//	request {timestamp_start, timestamp_end, http_version, method, scheme, authority, host, port, path, headers [[name, value]…], content, trailers}
//	response {timestamp_start, timestamp_end, http_version, status_code, reason, headers, content, trailers} or null
//
// Times are in seconds, and content is as it was on the wire. The messages of a WebSocket are in the flow of its
// handshake:
//
//	websocket {messages [[opcode, from_client, content, timestamp, dropped, injected]…], closed_by_client, close_code, close_reason, timestamp_end} or null
//
// Up to version 11, they are in a flow of their own, of type "websocket", whose metadata contains the id of the
// handshake's flow. A flow of type "tcp", with or without TLS, has
//
//	messages [[from_client, content, timestamp]…]
//
// Source: captures/README.md#mitmproxy-flows
package flow

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"unwire/captures"
	"unwire/captures/transfer"
)

// The versions of mitmproxy's flow format that are supported; version 4 is that of mitmproxy 4. Newer flows are
// read as far as they have the same members, and a problem is reported.
const (
	oldestVersion = 4
	newestVersion = 21
)

// Import adds the exchanges of a mitmproxy flow file to a capture.
//
// Shape: each body is one chunk at the time when its message was complete, because the format has no finer
// times. The messages of a WebSocket become an exchange of their own, which ends with the close frame that the
// flow describes. Flows of UDP and DNS are skipped and reported. Limits: 512 MiB, a million values and a
// nesting of 64 per flow; one flow at a time is in memory. Errors: that of a malformed file, with its offset;
// the flows before it are recorded. Flows with invalid values are skipped and reported.
func Import(ctx context.Context, r io.Reader, store captures.Target) (transfer.Report, error) {
	in := &importer{store: store, handshakes: make(map[string]int64)}
	rep, err := read(ctx, r, in.record)
	if err == nil {
		err = store.Flush(ctx)
	}
	return rep, err
}

// read converts all flows of a mitmproxy file and calls record for each. Flows that cannot be converted are
// skipped and reported.
func read(ctx context.Context, r io.Reader, record func(*conversion) error) (transfer.Report, error) {
	var rep transfer.Report
	s := scanner{r: bufio.NewReaderSize(r, 1<<16)}
	for i := 0; ; i++ {
		if err := ctx.Err(); err != nil {
			return rep, err
		}

		// Errors name the offset of the flow.
		start := s.off
		v, err := s.next()
		switch {
		case errors.Is(err, io.EOF) && i > 0:
			return rep, nil
		case errors.Is(err, io.EOF):
			return rep, errors.New("the file is empty, so it is not a mitmproxy flow file")
		case err != nil:
			return rep, fmt.Errorf("flow: flow %d at byte %d: %w", i, start, err)
		}

		// A flow that cannot be converted does not end the import.
		c := conversion{place: fmt.Sprintf("flow %d", i), rep: &rep}
		if err := c.convert(v); err != nil {
			rep.Problem(c.place, "skipped: %v", err)
			rep.Skipped++
			continue
		}
		if err := record(&c); err != nil {
			return rep, err
		}
		rep.Exchanges++
		if c.webSocket != nil {
			rep.Exchanges++
		}
	}
}

// maxHandshakes limits the number of WebSocket handshakes that an importer remembers, in case a later flow
// contains the messages and refers to the handshake.
const maxHandshakes = 1 << 16

// An importer records the exchanges of mitmproxy flows in a capture.
type importer struct {
	// store is the capture in which the imported exchanges are recorded.
	store captures.Target

	// handshakes maps the id of each flow that may have opened a WebSocket to the ID of its exchange.
	handshakes map[string]int64
}

// record records the exchanges of one converted flow.
func (in *importer) record(c *conversion) error {
	id, err := in.recordOne(&c.exchangeDraft, in.handshakes[c.handshake])
	if err != nil {
		return err
	}

	// In old formats, a later flow contains the messages and refers to this one.
	if c.ex.Status == http.StatusSwitchingProtocols && c.id != "" && c.webSocket == nil && len(in.handshakes) < maxHandshakes {
		in.handshakes[c.id] = id
	}
	if c.webSocket != nil {
		_, err = in.recordOne(c.webSocket, id)
	}
	return err
}

// recordOne records one exchange and returns its ID. openedBy is the ID of the handshake that opened it, if it
// is a WebSocket, or 0.
func (in *importer) recordOne(x *exchangeDraft, openedBy int64) (id int64, err error) {
	rec, err := in.store.Begin(x.ex)
	if err != nil {
		return 0, err
	}
	if openedBy != 0 {
		rec.Relate(captures.HandshakeOf, openedBy)
	}
	for _, chunk := range x.chunks {
		if x.ex.Transport == captures.WebSocket {
			rec.MessageAt(chunk.Dir, chunk.T, chunk.Opcode, chunk.Data)
		} else {
			rec.ChunkAt(chunk.Dir, chunk.T, chunk.Data)
		}
	}
	rec.EndAt(x.duration, x.outcome, x.ex.Error)
	return rec.ID(), in.store.Err()
}

// Sniff reports whether a file that begins with head looks like a mitmproxy flow file: the first tnetstring
// must contain another one that begins with a letter, as a dictionary does.
func Sniff(head []byte) bool {
	i := 0
	for i < len(head) && i < maxDigits && head[i] >= '0' && head[i] <= '9' {
		i++
	}
	if i == 0 || i+3 >= len(head) || head[i] != ':' {
		return false
	}

	// The dictionary's first key is a tnetstring too.
	rest := head[i+1:]
	j := 0
	for j < len(rest) && j < 3 && rest[j] >= '0' && rest[j] <= '9' {
		j++
	}
	return j > 0 && j+1 < len(rest) && rest[j] == ':' && rest[j+1] >= 'a' && rest[j+1] <= 'z'
}
