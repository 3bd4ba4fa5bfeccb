// Package flow reads the files in which mitmproxy keeps its flows: tnetstrings,
// one a flow.
//
// A scanner reads tnetstrings, and a conversion makes an exchange of each flow.
// Nothing is written in this format. Package formats alone calls this one.
//
// Shape: of a flow of HTTP,
//
//	version int; type "http"; error {msg, timestamp} or null
//	client_conn {peername or address [host, port]}
//	server_conn {peername or ip_address [host, port], sni, alpn, tls_version, cipher}
//	request {timestamp_start, timestamp_end, http_version, method, scheme, authority, host, port, path, headers [[name, value]…], content, trailers}
//	response {timestamp_start, timestamp_end, http_version, status_code, reason, headers, content, trailers} or null
//
// with times in seconds and content as it was on the wire. The messages of a WebSocket are
// in the flow of its handshake:
//
//	websocket {messages [[opcode, from_client, content, timestamp, dropped, injected]…], closed_by_client, close_code, close_reason, timestamp_end} or null
//
// Up to version 11 they are in a flow of type "websocket", whose metadata has the id of the
// handshake's. A flow of type "tcp", in TLS or not, has
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

// The versions of the format that are read. 4 is mitmproxy 4; what a later one
// than the newest has is read as far as it is alike, and reported.
const (
	oldestVersion = 4
	newestVersion = 21
)

// Import reads a flow file into a capture.
//
// Shape: a body is one chunk, at the time when its message was complete: the
// format has no others. The messages of a WebSocket are an exchange of their own, which ends
// with what the flow has of the close frame. Flows of UDP and DNS are left out and reported.
// Limits: 512 MiB a flow, one held at a time; its values a million and 64 deep.
// Errors: where the file is broken, with its place; the flows before it are
// recorded. A flow that is not as it should be is skipped and reported.
func Import(ctx context.Context, r io.Reader, store captures.Target) (transfer.Report, error) {
	in := &importer{store: store, handshakes: make(map[string]int64)}
	rep, err := read(ctx, r, in.record)
	if err == nil {
		err = store.Flush(ctx)
	}
	return rep, err
}

// read reads flows and has record record each exchange.
func read(ctx context.Context, r io.Reader, record func(*conversion) error) (transfer.Report, error) {
	var rep transfer.Report
	s := scanner{r: bufio.NewReaderSize(r, 1<<16)}
	for i := 0; ; i++ {
		if err := ctx.Err(); err != nil {
			return rep, err
		}
		start := s.off
		v, err := s.next()
		switch {
		case errors.Is(err, io.EOF) && i > 0:
			return rep, nil
		case errors.Is(err, io.EOF):
			return rep, errors.New("flow: empty: this is no flow file")
		case err != nil:
			return rep, fmt.Errorf("flow: flow %d at byte %d: %w", i, start, err)
		}
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
		if c.socket != nil {
			rep.Exchanges++
		}
	}
}

// maxHandshakes limits the flows that a later one may name as its handshake.
const maxHandshakes = 1 << 16

// An importer records exchanges.
type importer struct {
	store captures.Target

	// handshakes are the exchanges that may have opened a WebSocket, by the ids of their
	// flows.
	handshakes map[string]int64
}

// record records the exchanges of a flow.
func (in *importer) record(c *conversion) error {
	id, err := in.recordOne(&c.converted, in.handshakes[c.handshake])
	if err != nil {
		return err
	}
	if c.ex.Status == http.StatusSwitchingProtocols && c.id != "" && c.socket == nil && len(in.handshakes) < maxHandshakes {
		in.handshakes[c.id] = id
	}
	if c.socket != nil {
		_, err = in.recordOne(c.socket, id)
	}
	return err
}

// recordOne records an exchange that another one opened, or that none did: 0.
func (in *importer) recordOne(x *converted, openedBy int64) (id int64, err error) {
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

// Sniff reports whether a file that begins with head looks like flows: the
// first tnetstring must be a dictionary's, of which one sees the length, and a
// key behind it.
func Sniff(head []byte) bool {
	i := 0
	for i < len(head) && i < maxDigits && head[i] >= '0' && head[i] <= '9' {
		i++
	}
	if i == 0 || i+3 >= len(head) || head[i] != ':' {
		return false
	}
	rest := head[i+1:]
	j := 0
	for j < len(rest) && j < 3 && rest[j] >= '0' && rest[j] <= '9' {
		j++
	}
	return j > 0 && j+1 < len(rest) && rest[j] == ':' && rest[j+1] >= 'a' && rest[j+1] <= 'z'
}
