package pcap

import (
	"bytes"
	"context"
	"io"
	"time"
)

// Intervals of an import that runs while packets are still being recorded (live import).
const (
	// tickInterval is the time between checks for new TLS keys and for expired waits.
	tickInterval = 50 * time.Millisecond

	// maxPacketDelay is how long after its arrival a packet can be read at the latest.
	maxPacketDelay = 300 * time.Millisecond
)

// A Live configures an import of packets that are still being recorded: the importer reads to the end of the
// file, waits for more, and continues.
type Live struct {
	// Wait waits until more data may be available, at most for d. It returns false when no more data will come:
	// the import then reads the rest and ends.
	Wait func(d time.Duration) bool

	// KeyLog is the key log to which the command adds TLS secrets during the import. If nil, only Options.Keys
	// is used.
	KeyLog io.Reader

	// Again, if set, returns a new reader of the packets from their beginning. It is called after the recording
	// if keys were logged so late that the importer had stopped waiting for them.
	Again func() (io.Reader, error)
}

// A liveReader reads the growing packet file from, and calls tick of the importer while no data is available.
type liveReader struct {
	// ctx is the context of the import; its end makes reads fail.
	ctx context.Context
	// im is the importer to be informed while no data is available.
	im *importer
	// from reads the growing packet file; it returns io.EOF at the current end.
	from io.Reader

	// ended means that no more packets will be recorded.
	ended bool
}

// Read reads recorded packets, and blocks until more are available. It returns io.EOF at the end of the
// recording.
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

// tickIfDue calls tick if tickInterval has passed since the last call. It is needed while packets arrive
// without a pause; packetTime, the time of the last packet, then serves as the current time.
func (im *importer) tickIfDue(packetTime time.Time) {
	if im.options.Live == nil {
		return
	}
	if now := time.Now(); now.Sub(im.ticked) >= tickInterval {
		im.tick(now, packetTime)
	}
}

// tick reads new TLS keys, and ends waits that have expired. All packets captured before the time passed have
// been read; now is the current time.
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

// readNewKeys reads the complete lines that were added to the key log since the last call.
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
