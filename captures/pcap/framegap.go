package pcap

import (
	"encoding/binary"
	"io"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"unwire/captures"
)

const (
	// maxResync limits the search for the next HTTP/2 frame after lost packets, in bytes.
	maxResync = 4 << 20

	// unknownName is the name of placeholder fields in an HPACK table, which stand for fields that were added
	// in lost packets. No real field has this name.
	unknownName = "?"

	// unknownEntries is the number of placeholder entries that fit into an HPACK table of 64 KiB.
	unknownEntries = 2048
)

// A lossState is the state of parsing one direction of HTTP/2 after packets were lost.
type lossState struct {
	// skipBytes is the number of bytes that remain of the frame in which data was lost; they are skipped.
	skipBytes int64
	// endsStream is the id of the HTTP/2 stream that ends with the frame in which data was lost; 0 if none
	// does.
	endsStream uint32
	// searching means that the start of the next frame has to be searched for.
	searching bool
	// reason describes the last loss of packets; "" if there was none.
	reason string
}

// resumeAfterLoss prepares the parser to continue with the next HTTP/2 frame after n lost bytes; why is
// recorded as the reason in the affected exchanges. A loss within one DATA frame affects only the stream of
// that frame. Any other loss affects all streams and the HPACK table, whose entries are then unknown. It always
// returns true: HTTP/2 can continue.
func (l *http2Layer) resumeAfterLoss(dir captures.Direction, n int64, why string) bool {
	d, in := &l.dirs[dir], &l.session.inboxes[dir]
	d.gap.reason = why
	b := in.bytes()

	// Either the loss is within a frame whose length is known, or the next frame must be searched for.
	switch {
	case d.gap.skipBytes >= n:
		d.gap.skipBytes -= n
		in.skip(n)
		return true
	case d.gap.skipBytes == 0 && !d.gap.searching && len(b) >= frameHeader && int64(len(b))+n <= frameSize(b):
		d.gap.skipBytes = frameSize(b) - int64(len(b)) - n
	default:
		d.gap.skipBytes, d.gap.endsStream, d.gap.searching = 0, 0, true
	}

	// Mark the affected exchanges.
	id, inData := frameStream(b), !d.gap.searching && b[3] == byte(http2.FrameData)
	for stream, st := range l.streams {
		if !st.exchange.done[dir] && (!inData || stream == id) {
			st.exchange.lossReason = why
		}
	}
	if inData && http2.Flags(b[4]).Has(http2.FlagDataEndStream) {
		d.gap.endsStream = id
	}
	if !inData {
		d.resetTable()
	}
	d.block = block{}
	d.newFramer(in)
	in.skip(n)
	return true
}

// frameSize returns the size in bytes of the HTTP/2 frame at the beginning of b, including its header. b
// contains at least the header.
func frameSize(b []byte) int64 {
	return frameHeader + (int64(b[0])<<16 | int64(b[1])<<8 | int64(b[2]))
}

// frameStream returns the stream id of the HTTP/2 frame at the beginning of b, or 0 if b is too short.
func frameStream(b []byte) uint32 {
	if len(b) < frameHeader {
		return 0
	}
	return binary.BigEndian.Uint32(b[5:]) & (1<<31 - 1)
}

// resync skips the rest of a damaged frame and searches for the next one. It returns true if the next unread
// bytes are the beginning of a frame, which is always so if nothing was lost.
func (l *http2Layer) resync(dir captures.Direction) bool {
	d, in := &l.dirs[dir], &l.session.inboxes[dir]
	if d.gap.skipBytes > 0 {
		n := int(min(d.gap.skipBytes, int64(in.len())))
		t := in.time(n)
		in.discard(n)
		if d.gap.skipBytes -= int64(n); d.gap.skipBytes > 0 {
			return false
		}
		if d.gap.endsStream != 0 {
			l.finishDirection(dir, d.gap.endsStream, t)
			d.gap.endsStream = 0
		}
	}
	return !d.gap.searching || l.findFrame(dir)
}

// findFrame searches for the next HTTP/2 frame after a loss: a plausible frame header that is followed, after
// the frame's length, by another one. It skips the bytes before, and returns whether it found a frame.
func (l *http2Layer) findFrame(dir captures.Direction) bool {
	d, in := &l.dirs[dir], &l.session.inboxes[dir]
	b := in.bytes()
	for at := 0; at+frameHeader <= len(b); at++ {
		if !l.isPlausibleFrame(b[at:]) {
			continue
		}

		// The next frame must begin where this one ends.
		end := int64(at) + frameSize(b[at:])
		if end > int64(len(b)) && !in.closed && end-int64(at) <= maxResync {
			in.discard(at)
			// Wait for the end of the frame, to check what follows.
			return false
		}
		if rest := b[min(end, int64(len(b))):]; len(rest) >= frameHeader && !l.isPlausibleFrame(rest) {
			continue
		}
		in.discard(at)
		d.gap.searching = false
		return true
	}
	if in.len() > maxResync {
		l.session.fail(dir, d.gap.reason+"; no later frame was found")
	} else if n := in.len() - frameHeader + 1; n > 0 {
		in.discard(n)
	}
	return false
}

// isPlausibleFrame reports whether b begins with a valid HTTP/2 frame header for an existing or possible
// stream. CONTINUATION frames are excluded, because the header block that they continue is lost.
func (l *http2Layer) isPlausibleFrame(b []byte) bool {
	size, id := frameSize(b)-frameHeader, frameStream(b)
	if b[5]&0x80 != 0 || size > maxFrame-frameHeader {
		return false
	}

	// A request may be lost, so the stream may be new, but not far ahead.
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

// isPlausibleControlFrame reports whether a frame of this type on stream 0 may have this payload size in bytes.
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

// newFramer replaces the frame parser by one that reads from r.
func (d *http2Direction) newFramer(r io.Reader) {
	d.framer = http2.NewFramer(io.Discard, r)
	d.framer.SetMaxReadFrameSize(maxFrame)
	d.framer.SetReuseFrames()
}

// newTable replaces the HPACK decoder by one with an empty table of size bytes.
func (d *http2Direction) newTable(size uint32) {
	d.hpack = hpack.NewDecoder(size, nil)
	// The peer's SETTINGS limit the table, but may be captured late. So apply only the importer's own limit.
	d.hpack.SetAllowedMaxDynamicTableSize(maxTable)
	d.hpack.SetMaxStringLength(maxSection)
	d.hpack.SetEmitFunc(d.addField)
}

// resetTable fills the HPACK table with placeholders, because packets that changed it were lost. HPACK refers
// to entries by their distance from the newest one, so entries added from now on have the right index
// nevertheless.
func (d *http2Direction) resetTable() {
	d.newTable(maxTable)
	d.hpack.SetEmitEnabled(false)
	// A literal header field with an empty value, which is added to the table.
	entry := []byte{0x40, byte(len(unknownName)), unknownName[0], 0}
	for range unknownEntries {
		// The field is well-formed, so this cannot fail.
		_, _ = d.hpack.Write(entry)
	}
	_ = d.hpack.Close()
	d.hpack.SetEmitEnabled(true)
}
