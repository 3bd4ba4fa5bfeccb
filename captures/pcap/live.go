package pcap

import (
	"bytes"
	"context"
	"io"
	"time"

	"unwire/captures"
)

// How a live import keeps up with its packets.
const (
	// tickEvery is how often keys are looked for, and what has waited too long.
	tickEvery = 50 * time.Millisecond

	// recordingDelay is by how much packets may be behind the clock when they can be read.
	recordingDelay = 300 * time.Millisecond

	// maxGapWait is how long bytes behind a missing segment wait for it. Packets of one
	// machine come in order, so a missing one will not come.
	maxGapWait = 700 * time.Millisecond

	// maxSniffWait is how long a connection's first bytes wait for more that tell what is
	// spoken, such as the client's if the server speaks first.
	maxSniffWait = 500 * time.Millisecond

	// maxTurnWait is how long an answer waits for its request, and a reset stream for
	// what the other side sent before it saw the reset.
	maxTurnWait = 700 * time.Millisecond

	// keptForOthers is the share of the budget that connections without keys leave alone,
	// in bytes.
	keptForOthers = maxBuffered / 2
)

// A Live says how packets that are being recorded are imported: r of Import is read to
// its end again and again.
type Live struct {
	// Wait waits until there may be more to read, for d at most. It returns false when
	// nothing will be added any more: then what is left is read, and the import ends.
	Wait func(d time.Duration) bool

	// KeyLog has the secrets as far as the command has written them. Lines that are added
	// later are found. Nil: there are none but those of Options.Keys.
	KeyLog io.Reader

	// Again, if set, opens the packets at their beginning when none will be added any
	// more. It is called if keys came after too many bytes had waited for them.
	Again func() (io.Reader, error)
}

// A liveReader reads a file that grows, and has the importer tick while there is nothing.
type liveReader struct {
	ctx   context.Context
	im    *importer
	from  io.Reader
	ended bool
}

// Read returns io.EOF at the end of a file that grows no more.
func (r *liveReader) Read(p []byte) (int, error) {
	for {
		n, err := r.from.Read(p)
		if n > 0 {
			return n, nil
		}
		if err != nil && err != io.EOF {
			return 0, err
		}
		if r.ended {
			return 0, io.EOF
		}
		if err := r.ctx.Err(); err != nil {
			return 0, err
		}
		r.im.tick(time.Now(), time.Now().Add(-recordingDelay))
		r.ended = !r.im.options.Live.Wait(tickEvery)
	}
}

// tickIfDue lets time pass while packets are read without a pause: the time is theirs.
func (im *importer) tickIfDue(packetTime time.Time) {
	if im.options.Live == nil {
		return
	}
	if now := time.Now(); now.Sub(im.ticked) >= tickEvery {
		im.tick(now, packetTime)
	}
}

// tick looks for keys that came meanwhile, and no longer waits for what does not come.
// passed is the time up to which all packets were read.
func (im *importer) tick(now, passed time.Time) {
	im.ticked = now
	im.readNewKeys()
	for _, c := range im.conns {
		if c.finished {
			continue
		}
		c.tick(passed)
		switch {
		case c.ended() && !c.awaitsKeys(), c.reset && passed.Sub(c.last) > afterReset:
			im.finish(c)
		}
	}
}

// readNewKeys adds the whole lines that the command has written since the last time.
func (im *importer) readNewKeys() {
	log := im.options.Live.KeyLog
	if log == nil {
		return
	}
	var buf [4096]byte
	for {
		n, err := log.Read(buf[:])
		im.keyLine = append(im.keyLine, buf[:n]...)
		for {
			line, rest, whole := bytes.Cut(im.keyLine, []byte("\n"))
			if !whole {
				break
			}
			// The limit of sessions is reached: later ones are reported as without keys.
			_ = im.options.Keys.addLine(string(line))
			im.keyLine = rest
		}
		if len(im.keyLine) > maxKeyLine {
			im.keyLine = nil // no line of a key log
		}
		if n == 0 || err != nil {
			return
		}
	}
}

// ended reports whether both sides have closed the connection.
func (c *conn) ended() bool { return c.halves[0].ended && c.halves[1].ended }

// awaitsKeys reports whether TLS waits for keys that may still be logged.
func (c *conn) awaitsKeys() bool { return c.live && c.awaiting > 0 }

// tick gives up what the connection has waited for too long.
func (c *conn) tick(passed time.Time) {
	for side := range c.halves {
		h := &c.halves[side]
		for len(h.queue) > 0 && !h.ended && passed.Sub(h.queue[0].t) > maxGapWait {
			h.skipGap(passed)
		}
		if len(h.queue) == 0 && h.hasFIN && passed.Sub(h.finTime) > maxGapWait {
			h.flush(passed)
		}
	}
	if c.awaiting > 0 {
		c.session.retryKeys()
	}
	c.session.tick(passed)
}

// A ticker is a layer for which it matters that time passes.
type ticker interface {
	tick(passed time.Time)
}

// tick chooses a layer although more might come, takes answers without requests, and
// lets the layer do the like.
func (s *session) tick(passed time.Time) {
	switch {
	case s.done:
	case s.layer == nil:
		if s.waitsSince(up, passed, maxSniffWait) || s.waitsSince(down, passed, maxSniffWait) {
			s.sniffNow = true
			s.pump()
			s.sniffNow = false
		}
	case !s.isTLS() && s.waitsSince(down, passed, maxTurnWait):
		s.forceStep[down] = true
		s.pump()
		s.forceStep[down] = false
	}
	if l, ok := s.layer.(ticker); ok {
		l.tick(passed)
	}
}

// waitsSince reports whether bytes of a direction have waited for d.
func (s *session) waitsSince(dir captures.Direction, passed time.Time, d time.Duration) bool {
	in := &s.inboxes[dir]
	if in.len() == 0 {
		return false
	}
	t, _ := in.firstRun(1)
	return passed.Sub(t) > d
}

func (s *session) isTLS() bool {
	_, ok := s.layer.(*tlsLayer)
	return ok
}

func (l *tlsLayer) tick(passed time.Time) { l.inner.tick(passed) }

func (h *http1) tick(passed time.Time) {
	if h.tunnel != nil {
		h.tunnel.tick(passed)
	}
}

// tick ends streams that were reset a while ago.
func (l *http2Layer) tick(passed time.Time) {
	n := 0
	for ; n < len(l.resets); n++ {
		st := l.streams[l.resets[n]]
		if st != nil && st.reset != nil && passed.Sub(st.reset.t) <= maxTurnWait {
			break
		}
		l.endReset(l.resets[n])
	}
	l.resets = l.resets[n:]
}
