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
// with times in seconds and content as it was on the wire.
//
// Source: RESEARCH.md#mitmproxy-flows
package flow

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

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
// format has no others. Messages of WebSockets, and flows of TCP, UDP and DNS,
// are left out and reported.
// Limits: 512 MiB a flow, one held at a time; its values a million and 64 deep.
// Errors: where the file is broken, with its place; the flows before it are
// recorded. A flow that is not as it should be is skipped and reported.
func Import(ctx context.Context, r io.Reader, store captures.Target) (transfer.Report, error) {
	rep, err := read(ctx, r, func(c *conversion) error { return c.record(store) })
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
	}
}

// record records the exchange.
func (c *conversion) record(store captures.Target) error {
	rec, err := store.Begin(c.ex)
	if err != nil {
		return err
	}
	for _, chunk := range c.chunks {
		rec.ChunkAt(chunk.Dir, chunk.T, chunk.Data)
	}
	rec.EndAt(c.duration, c.outcome, c.ex.Error)
	return store.Err()
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
