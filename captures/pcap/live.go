package pcap

import (
	"bytes"
	"context"
	"io"
	"time"
)

// How a live import keeps up with its packets.
const (
	// tickEvery is how often keys are looked for, and what has waited too long.
	tickEvery = 50 * time.Millisecond

	// recordingDelay is by how much packets may be behind the clock when they can be read.
	recordingDelay = 300 * time.Millisecond
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
