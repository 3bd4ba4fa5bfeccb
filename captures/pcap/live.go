package pcap

import (
	"bytes"
	"context"
	"io"
	"time"
)

// Intervals of a live import.
const (
	// tickInterval is the time between checks for new keys and for what has waited too long.
	tickInterval = 50 * time.Millisecond

	// maxPacketDelay is how long after its arrival a packet can be read at the latest.
	maxPacketDelay = 300 * time.Millisecond
)

// A Live describes an import of packets that are still being recorded: the reader of Import is read to its end
// again and again.
type Live struct {
	// Wait waits until more data may be available, at most for d. It returns false when no more data will come:
	// the import then reads the rest and ends.
	Wait func(d time.Duration) bool

	// KeyLog is read for secrets that the command logs during the import. If nil, there are only those of
	// Options.Keys.
	KeyLog io.Reader

	// Again, if set, reopens the packets at their beginning after the recording. It is called if keys were
	// logged after too many bytes had waited for them.
	Again func() (io.Reader, error)
}

// A liveReader reads a growing file, and calls tick while no data is available.
type liveReader struct {
	ctx   context.Context
	im    *importer
	from  io.Reader
	ended bool
}

// Read reads recorded packets, and waits for more. It returns io.EOF at the end of the recording.
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
		r.im.tick(time.Now(), time.Now().Add(-maxPacketDelay))
		r.ended = !r.im.options.Live.Wait(tickInterval)
	}
}

// tickIfDue calls tick while packets arrive without a pause. Time is then that of the packets.
func (im *importer) tickIfDue(packetTime time.Time) {
	if im.options.Live == nil {
		return
	}
	if now := time.Now(); now.Sub(im.ticked) >= tickInterval {
		im.tick(now, packetTime)
	}
}

// tick looks for new keys, and stops waiting for what is overdue. passed is the time up to which all packets
// were read.
func (im *importer) tick(now, passed time.Time) {
	im.ticked = now
	im.readNewKeys()
	for _, c := range im.conns {
		if c.finished {
			continue
		}
		c.tick(passed)
		switch {
		case c.ended() && !c.awaitsKeys(), c.reset && passed.Sub(c.last) > resetGracePeriod:
			im.finish(c)
		}
	}
}

// readNewKeys reads the complete lines that were added to the key log.
func (im *importer) readNewKeys() {
	log := im.options.Live.KeyLog
	if log == nil {
		return
	}
	var buf [4096]byte
	for {
		// The last line may be incomplete: keep it for the next time.
		n, err := log.Read(buf[:])
		im.keyLine = append(im.keyLine, buf[:n]...)
		for {
			line, rest, whole := bytes.Cut(im.keyLine, []byte("\n"))
			if !whole {
				break
			}
			// It fails only if there are too many sessions: further ones are reported as lacking keys.
			_ = im.options.Keys.addLine(string(line))
			im.keyLine = rest
		}
		if len(im.keyLine) > maxKeyLine {
			// This is not a line of a key log.
			im.keyLine = nil
		}
		if n == 0 || err != nil {
			return
		}
	}
}
