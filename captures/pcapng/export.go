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

// Options says what is written. The zero value works.
type Options struct {
	Name string // of the capture, for the file's comment
}

// Written says what an export wrote.
type Written struct {
	Exchanges   int
	Connections int
	Packets     int64

	// LeftOut counts exchanges that have no packets: they never reached the server,
	// or are tunnels.
	LeftOut int

	// NoHandshake counts WebSockets that are left out because the exchange that opened
	// them is not in the capture.
	NoHandshake int

	// Unnamed counts exchanges of which the program that made the connection is known,
	// which packets do not have.
	Unnamed int

	// Reframed counts HTTP/1 bodies that are chunked since their length differs from
	// the one in their headers.
	Reframed int
}

// Export writes a capture as the packets of the conversation that it records,
// with the secrets that open them. They are made from the exchanges, whoever
// recorded those, and not the packets that were on the wire; the file's comment
// says so.
//
// Shape: exchanges of one client and server share a connection, as they did;
// HTTP/1 ones that overlap do not. HTTP/2 has a DATA frame a chunk, at its time,
// RST_STREAM for what was cut off, and nothing behind what was never seen to
// end. TLS is of the recorded version with SNI and ALPN, between ends made for
// this, with a certificate of nobody's. An address that is none is one of the
// ranges for examples. The times of response headers are not recorded: they come
// with the first byte of the body, or with the end.
//
// Limits: it holds what identifies each exchange, and a page of chunks of each
// that goes on at one time. Errors: of src and of w; what had been written by
// then is a readable file. Source: captures/README.md#packets-out
func Export(ctx context.Context, w io.Writer, src transfer.Source, o Options) (Written, error) {
	name := filepath.Base(o.Name)
	if o.Name == "" {
		name = "a capture"
	}
	out, err := newWriter(w, "synthesised from "+name+" by 'unwire export': not the packets that were on the wire. "+
		"Its secrets are in the file; they open nothing else.")
	if err != nil {
		return Written{}, err
	}
	cert, err := certificate()
	if err != nil {
		return Written{}, fmt.Errorf("pcapng: %w", err)
	}
	joined, err := joinSockets(ctx, src)
	if err != nil {
		return Written{}, fmt.Errorf("pcapng: %w", err)
	}
	e := &exporter{ctx: ctx, src: joined, out: out, cert: cert}
	err = e.run()
	if flushed := out.flush(); err == nil {
		err = flushed
	}
	return e.done, err
}

// An exporter is one export.
type exporter struct {
	ctx  context.Context
	src  *joinedSource
	out  *writer
	cert tls.Certificate
	plan *plan
	done Written
}

func (e *exporter) run() (err error) {
	if e.plan, err = makePlan(e.ctx, e.src); err != nil {
		return err
	}
	e.done.NoHandshake = e.plan.noHandshake
	e.done.LeftOut, e.done.Connections = e.plan.leftOut, len(e.plan.conns)
	var running schedule
	defer func() {
		for _, t := range running {
			t.stop() // after an error
		}
	}()
	items := e.plan.items
	for len(items) > 0 || len(running) > 0 {
		if err := e.ctx.Err(); err != nil {
			return err
		}
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

// beginExchange opens the connection of an exchange, if it is the first there, and the
// exchange.
func (e *exporter) beginExchange(it item) (*exchangeWriter, error) {
	ex, err := e.src.Exchange(e.ctx, it.id)
	if err != nil {
		return nil, err
	}
	c := it.conn
	if c.speaker == nil {
		if err := e.openConnection(c, it.started); err != nil {
			return nil, err
		}
	}
	t := &exchangeWriter{ctx: e.ctx, src: e.src, ex: ex, conn: c, order: e.done.Exchanges, next: ex.Started}
	e.done.Exchanges++
	if joined := e.src.sockets[ex.ID]; joined != nil {
		e.done.Exchanges++
		if joined.Process != (captures.Process{}) {
			e.done.Unnamed++
		}
	}
	if ex.Process != (captures.Process{}) {
		e.done.Unnamed++
	}
	if err := t.begin(&e.done); err != nil {
		if t.stop != nil {
			t.stop()
		}
		return nil, err
	}
	return t, nil
}

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
	switch {
	case c.raw:
		c.speaker = &rawSpeaker{l}
		return nil
	case !c.h2:
		c.speaker = &http1{l}
		return nil
	}
	c.speaker, err = newHTTP2(l)
	return err
}

// finishExchange closes the connection behind its last exchange, unless something on it
// was never seen to end: then the capture ends before the connection does.
func (e *exporter) finishExchange(t *exchangeWriter) error {
	c := t.conn
	if o := t.ex.Outcome; o == captures.Incomplete || o == captures.InFlight {
		c.open = true
	}
	if c.left--; c.left > 0 {
		return nil
	}
	if !c.open {
		for _, dir := range []captures.Direction{captures.Up, captures.Down} {
			if err := c.link.close(dir); err != nil {
				return err
			}
		}
	}
	e.done.Packets += c.link.packets
	c.link, c.speaker = nil, nil
	return nil
}

// A schedule is the exchanges that go on, the one that is due first at its head.
type schedule []*exchangeWriter

func (a schedule) Len() int { return len(a) }
func (a schedule) Less(i, j int) bool {
	if !a[i].next.Equal(a[j].next) {
		return a[i].next.Before(a[j].next)
	}
	return a[i].order < a[j].order
}
func (a schedule) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *schedule) Push(x any)   { *a = append(*a, x.(*exchangeWriter)) }
func (a *schedule) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// certificate is one of nobody's.
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
