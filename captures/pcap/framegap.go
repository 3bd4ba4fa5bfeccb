package pcap

import (
	"encoding/binary"
	"io"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"unwire/captures"
)

const (
	// maxResync is in how many bytes the next frame is searched for.
	maxResync = 4 << 20

	// unknownName stands for the name of a header field that was sent before a
	// loss. No field has this name.
	unknownName = "?"

	// unknownEntries is how many entries fit into a header table of 64 KiB.
	unknownEntries = 2048
)

// A frameGap is where a direction of HTTP/2 stands behind a loss.
type frameGap struct {
	skip   int64  // bytes that are left of the frame in which the loss was
	ends   uint32 // the stream that ends with that frame
	search bool   // the next frame has to be found
	why    string // the last loss
}

// skipLost continues with the next frame. A loss within one DATA frame affects that
// frame's stream only. Any other loss affects all streams and the header table, whose
// entries are unknown from then on.
func (l *http2Layer) skipLost(dir captures.Direction, n int64, why string) bool {
	d, in := &l.dirs[dir], &l.session.inboxes[dir]
	d.gap.why = why
	b := in.bytes()
	switch {
	case d.gap.skip >= n:
		d.gap.skip -= n
		in.skip(n)
		return true
	case d.gap.skip == 0 && !d.gap.search && len(b) >= frameHeader && int64(len(b))+n <= frameSize(b):
		d.gap.skip = frameSize(b) - int64(len(b)) - n
	default:
		d.gap.skip, d.gap.ends, d.gap.search = 0, 0, true
	}
	id, inData := frameStream(b), !d.gap.search && b[3] == byte(http2.FrameData)
	for stream, st := range l.streams {
		if !st.exchange.done[dir] && (!inData || stream == id) {
			st.exchange.lossReason = why
		}
	}
	if inData && http2.Flags(b[4]).Has(http2.FlagDataEndStream) {
		d.gap.ends = id
	}
	if !inData {
		d.resetTable()
	}
	d.block = block{}
	d.newFramer(in)
	in.skip(n)
	return true
}

// frameSize is how long the frame is that b begins with.
func frameSize(b []byte) int64 {
	return frameHeader + (int64(b[0])<<16 | int64(b[1])<<8 | int64(b[2]))
}

// frameStream is the stream of the frame that b begins with, 0 if b is short.
func frameStream(b []byte) uint32 {
	if len(b) < frameHeader {
		return 0
	}
	return binary.BigEndian.Uint32(b[5:]) & (1<<31 - 1)
}

// resync goes on behind a loss; it reports whether a frame begins next.
func (l *http2Layer) resync(dir captures.Direction) bool {
	d, in := &l.dirs[dir], &l.session.inboxes[dir]
	if d.gap.skip > 0 {
		n := int(min(d.gap.skip, int64(in.len())))
		t := in.time(n)
		in.discard(n)
		if d.gap.skip -= int64(n); d.gap.skip > 0 {
			return false
		}
		if d.gap.ends != 0 {
			l.finishDirection(dir, d.gap.ends, t)
			d.gap.ends = 0
		}
	}
	return !d.gap.search || l.findFrame(dir)
}

// findFrame looks for bytes that can only be a frame's header: of a stream that
// is there or could be, with another such header behind the frame.
func (l *http2Layer) findFrame(dir captures.Direction) bool {
	d, in := &l.dirs[dir], &l.session.inboxes[dir]
	b := in.bytes()
	for at := 0; at+frameHeader <= len(b); at++ {
		if !l.isPlausibleFrame(b[at:]) {
			continue
		}
		end := int64(at) + frameSize(b[at:])
		if end > int64(len(b)) && !in.closed && end-int64(at) <= maxResync {
			in.discard(at)
			return false // its end will tell
		}
		if rest := b[min(end, int64(len(b))):]; len(rest) >= frameHeader && !l.isPlausibleFrame(rest) {
			continue
		}
		in.discard(at)
		d.gap.search = false
		return true
	}
	if in.len() > maxResync {
		l.session.fail(dir, d.gap.why+"; no frame was found behind it")
	} else if n := in.len() - frameHeader + 1; n > 0 {
		in.discard(n)
	}
	return false
}

// isPlausibleFrame reports whether b begins with a frame's header. A CONTINUATION frame
// does not count, as the header block that it continues is lost.
func (l *http2Layer) isPlausibleFrame(b []byte) bool {
	size, id := frameSize(b)-frameHeader, frameStream(b)
	if b[5]&0x80 != 0 || size > maxFrame-frameHeader {
		return false
	}

	// A request may have been lost, so a stream may be new, but not by much.
	open := l.streams[id] != nil
	seen := open || id%2 == 1 && id <= l.highest
	possible := open || id%2 == 1 && id < l.highest+1<<16

	switch kind := http2.FrameType(b[3]); kind {
	case http2.FrameData:
		return seen
	case http2.FrameHeaders:
		return size > 0 && size <= maxBlock && possible
	case http2.FrameRSTStream:
		return size == 4 && possible
	case http2.FrameWindowUpdate:
		return size == 4 && (id == 0 || open || id <= l.highest)
	default:
		return id == 0 && isPlausibleControlFrame(kind, size)
	}
}

// isPlausibleControlFrame reports whether a frame of the connection may have this
// size.
func isPlausibleControlFrame(kind http2.FrameType, size int64) bool {
	switch kind {
	case http2.FrameSettings:
		return size%6 == 0 && size <= 6*64
	case http2.FramePing:
		return size == 8
	case http2.FrameGoAway:
		return size >= 8 && size < 1<<14
	}
	return false
}

func (d *http2Direction) newFramer(r io.Reader) {
	d.framer = http2.NewFramer(io.Discard, r)
	d.framer.SetMaxReadFrameSize(maxFrame)
	d.framer.SetReuseFrames()
}

func (d *http2Direction) newTable(size uint32) {
	d.hpack = hpack.NewDecoder(size, nil)
	// The other side's SETTINGS limit the table, but they may arrive late in the
	// capture. So only the importer's own limit is applied.
	d.hpack.SetAllowedMaxDynamicTableSize(maxTable)
	d.hpack.SetMaxStringLength(maxSection)
	d.hpack.SetEmitFunc(d.addField)
}

// resetTable makes a header table in which every entry is unknown. HPACK refers to an
// entry by its distance from the newest one, so entries that are added from now on have
// the right index whatever was lost.
func (d *http2Direction) resetTable() {
	d.newTable(maxTable)
	d.hpack.SetEmitEnabled(false)
	// A literal without a value, which is added to the table.
	entry := []byte{0x40, byte(len(unknownName)), unknownName[0], 0}
	for range unknownEntries {
		_, _ = d.hpack.Write(entry) // well-formed
	}
	_ = d.hpack.Close()
	d.hpack.SetEmitEnabled(true)
}
