package pcapng

import (
	"container/heap"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"path/filepath"
	"time"

	"unwire/captures"
	"unwire/captures/transfer"
)

// Options are the options of Export. The zero value works.
type Options struct {
	// Name is the name of the capture, for the comment in the file.
	Name string
}

// A Result contains the counts of a pcapng export.
type Result struct {
	// Exchanges is the number of exchanges that were written.
	Exchanges int
	// Connections is the number of synthesized TCP connections.
	Connections int
	// Packets is the number of packets that were written.
	Packets int64

	// WithoutPackets counts exchanges that are not written: they never reached the server, or are tunnels.
	WithoutPackets int

	// NoHandshake counts WebSockets that are not written because their handshake is not in the capture.
	NoHandshake int

	// WithoutProcess counts exchanges whose client program is known but cannot be stored in packets.
	WithoutProcess int

	// Reframed counts HTTP/1 bodies that are written with chunked encoding, because their length differs from
	// Content-Length.
	Reframed int
}

// Export writes a capture as synthesized packets of the recorded traffic, with the TLS secrets that decrypt
// them. The packets are made from the exchanges and are not those that were on the wire; a comment in the file
// mentions it.
//
// Shape: exchanges of the same client and server share a connection, except HTTP/1 exchanges that overlap. In
// HTTP/2, each chunk is a DATA frame at its time; exchanges that were cut off end with RST_STREAM, and those
// without a recorded end have none. TLS has the recorded version, SNI and ALPN, but a self-signed certificate.
// Missing or invalid addresses are replaced by addresses reserved for documentation. Response headers have no
// recorded time, so they are written with the first byte of the body, or at the end.
//
// Limits: the identity of each exchange is in memory, and a page of chunks of each concurrent one. Errors: those
// of src and of w. What was written before is a readable file. Source: captures/README.md#packets-out
func Export(ctx context.Context, w io.Writer, src transfer.Source, o Options) (Result, error) {
	name := filepath.Base(o.Name)
	if o.Name == "" {
		name = "a capture"
	}
	out, err := newWriter(w, "synthesised from "+name+" by 'unwire export': not the packets that were on the wire. "+
		"The file contains the TLS secrets, which decrypt only these packets.")
	if err != nil {
		return Result{}, err
	}
	cert, err := certificate()
	if err != nil {
		return Result{}, fmt.Errorf("pcapng: %w", err)
	}
	joined, err := joinWebSockets(ctx, src)
	if err != nil {
		return Result{}, fmt.Errorf("pcapng: %w", err)
	}
	e := &exporter{ctx: ctx, src: joined, out: out, cert: cert}
	err = e.run()
	if flushed := out.flush(); err == nil {
		err = flushed
	}
	return e.done, err
}

// An exporter is the state of one export to a pcapng file.
type exporter struct {
	// ctx is the context of the export; its end cancels it.
	ctx context.Context
	// src is the exported capture, with each WebSocket as part of its handshake's exchange.
	src *joinedSource
	// out writes the pcapng file.
	out *writer

	// cert is the self-signed certificate of all synthesized TLS servers.
	cert tls.Certificate
	// plan assigns the exchanges to the connections to be synthesized.
	plan *plan
	// done contains the counts of the export so far.
	done Result
}

// run writes all exchanges in the order of time, as a discrete event simulation.
func (e *exporter) run() (err error) {
	if e.plan, err = makePlan(e.ctx, e.src); err != nil {
		return err
	}
	e.done.NoHandshake = e.plan.noHandshake
	e.done.WithoutPackets, e.done.Connections = e.plan.withoutPackets, len(e.plan.conns)
	var running schedule
	defer func() {
		for _, t := range running {
			// Release the iterators after an error.
			t.stopChunks()
		}
	}()
	items := e.plan.exchanges
	for len(items) > 0 || len(running) > 0 {
		if err := e.ctx.Err(); err != nil {
			return err
		}

		// Begin the next exchange if it is due before the next step of a running one.
		if len(items) > 0 && (len(running) == 0 || !items[0].started.After(running[0].next)) {
			t, err := e.beginExchange(items[0])
			if err != nil {
				return fmt.Errorf("pcapng: exchange %d: %w", items[0].id, err)
			}
			items = items[1:]
			heap.Push(&running, t)
			continue
		}
		t := running[0]
		over, err := t.step()
		if err != nil {
			return fmt.Errorf("pcapng: exchange %d: %w", t.ex.ID, err)
		}
		if !over {
			heap.Fix(&running, 0)
			continue
		}
		heap.Pop(&running)
		if err := e.finishExchange(t); err != nil {
			return err
		}
	}
	return nil
}

// beginExchange opens the connection of a planned exchange, unless it is open, and writes the request's head.
func (e *exporter) beginExchange(it plannedExchange) (*exchangeWriter, error) {
	ex, err := e.src.Exchange(e.ctx, it.id)
	if err != nil {
		return nil, err
	}
	c := it.conn
	if c.writer == nil {
		if err := e.openConnection(c, it.started); err != nil {
			return nil, err
		}
	}
	t := &exchangeWriter{ctx: e.ctx, src: e.src, ex: ex, conn: c, order: e.done.Exchanges, next: ex.Started}
	e.done.Exchanges++
	if joined := e.src.byHandshake[ex.ID]; joined != nil {
		e.done.Exchanges++
		if joined.Process != (captures.Process{}) {
			e.done.WithoutProcess++
		}
	}
	if ex.Process != (captures.Process{}) {
		e.done.WithoutProcess++
	}

	// Release the iterator if the exchange cannot be begun.
	if err := t.begin(&e.done); err != nil {
		if t.stopChunks != nil {
			t.stopChunks()
		}
		return nil, err
	}
	return t, nil
}

// openConnection writes the TCP and TLS handshakes of a connection at time at, and chooses the writer for its
// protocol.
func (e *exporter) openConnection(c *connection, at time.Time) error {
	l, err := newLink(e.out, c.client, c.server, at)
	if err != nil {
		return err
	}
	c.link = l
	if c.version != 0 {
		if err := l.startTLS(c.version, c.name, c.alpn, e.cert); err != nil {
			return err
		}
	}

	// The protocol determines how exchanges are written.
	switch {
	case c.raw:
		c.writer = &rawWriter{l}
		return nil
	case !c.h2:
		c.writer = &http1Writer{l}
		return nil
	}
	c.writer, err = newHTTP2(l)
	return err
}

// finishExchange closes the connection of t if that was its last exchange. If any exchange on it has no
// recorded end, the connection is left open at the end of the file.
func (e *exporter) finishExchange(t *exchangeWriter) error {
	c := t.conn
	if o := t.ex.Outcome; o == captures.Incomplete || o == captures.InFlight {
		c.unfinished = true
	}
	if c.running--; c.running > 0 {
		return nil
	}
	if !c.unfinished {
		for _, dir := range []captures.Direction{captures.Up, captures.Down} {
			if err := c.link.close(dir); err != nil {
				return err
			}
		}
	}
	e.done.Packets += c.link.packets
	c.link, c.writer = nil, nil
	return nil
}

// A schedule is a heap of running exchanges, ordered by the time of their next step. It implements
// heap.Interface.
type schedule []*exchangeWriter

// Len returns the number of running exchanges.
func (a schedule) Len() int { return len(a) }

// Less orders exchanges by the time of their next step, and by their order in the plan if the times are equal.
func (a schedule) Less(i, j int) bool {
	if !a[i].next.Equal(a[j].next) {
		return a[i].next.Before(a[j].next)
	}
	return a[i].order < a[j].order
}

// Swap swaps two exchanges.
func (a schedule) Swap(i, j int) { a[i], a[j] = a[j], a[i] }

// Push adds an *exchangeWriter at the end.
func (a *schedule) Push(x any) { *a = append(*a, x.(*exchangeWriter)) }

// Pop removes and returns the last exchange.
func (a *schedule) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// certificate returns a new self-signed certificate for the synthesized TLS servers.
func certificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "synthesised by unwire export"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<32, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
