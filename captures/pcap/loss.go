package pcap

import (
	"cmp"
	"encoding/binary"
	"io"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"unwire/captures"
)

const (
	maxSeqAhead = 2048      // records that may be lost at once
	maxTrials   = 16        // places that look like a record and do not open, in a row
	maxTried    = 256 << 20 // bytes that are opened in vain, in a connection's direction
	maxResync   = 4 << 20   // bytes in which the next frame is looked for

	unknownName    = "?"  // no field has it: it stands for one that was told before a loss
	unknownEntries = 2048 // a table of 64 KiB has room for as many
)

// A lossy layer can go on behind bytes that were not captured.
type lossy interface {
	// lose is told that n bytes of a direction are missing behind those in its
	// inbox, from which all that is whole has been taken. It reports whether it
	// can go on; then the inbox is empty.
	lose(dir captures.Direction, n int64, why string) bool
}

// lost tells the layer of a loss, or gives the direction up.
func (s *session) lost(dir captures.Direction, n int64, why string) {
	in := &s.in[dir]
	if in.closed {
		return
	}
	s.forced[dir] = true // what waits for the other direction is taken now
	s.pump()
	s.forced[dir] = false
	if in.closed {
		return
	}
	offset := in.offset
	if l, ok := s.layer.(lossy); !ok || !l.lose(dir, n, why) {
		s.fail(dir, why)
		return
	}
	s.conn.remark(dir, offset, why)
	s.pump()
}

// jump passes over what is left and n bytes that are missing.
func (in *inbox) jump(n int64) {
	in.take(in.len())
	in.offset += n
}

// A recordGap is a run of bytes without whole records.
type recordGap struct {
	bytes  int64  // of it; 0: there is none
	why    string // it is there
	trials int
	tried  int64 // bytes, in all gaps
}

// lose goes on where the application's key is in use: later records open under
// a sequence number that is somewhat higher.
func (l *tlsLayer) lose(dir captures.Direction, n int64, why string) bool {
	d, in := &l.dirs[dir], &l.raw.in[dir]
	if d.protect == nil || l.hello.version == version13 && d.phase != phaseApplication {
		return false
	}
	d.gap.bytes += int64(in.len()) + n
	d.gap.why, d.gap.trials, d.handshake = cmp.Or(d.gap.why, why), 0, nil
	in.jump(n)
	return true
}

// findRecord looks for the first whole record behind a gap, tells the session
// within how much is missing, and reports whether it found one. A direction in
// which none can be found is given up.
func (l *tlsLayer) findRecord(dir captures.Direction) bool {
	d, in := &l.dirs[dir], &l.raw.in[dir]
	for in.len() >= recordHeader {
		b := in.bytes()
		at, length := l.candidate(b)
		in.take(at)
		d.gap.bytes += int64(at)
		if length == 0 || len(b) < at+length {
			return false // more will tell
		}
		if ahead, ok := l.sequence(dir, b[at:at+length]); ok {
			d.protect.seq += ahead
			lost, why := d.gap.bytes-int64(ahead)*l.overhead(), d.gap.why
			d.gap = recordGap{tried: d.gap.tried}
			l.inner.lost(dir, max(lost, 0), why)
			return true
		}
		in.take(1)
		d.gap.bytes++
		if d.gap.trials++; d.gap.trials > maxTrials || d.gap.tried > maxTried {
			l.raw.fail(dir, d.gap.why+"; no record behind it opens")
			return false
		}
	}
	return false
}

// candidate returns where in b something looks like a record, and how long that
// is; 0 if nothing does up to that place.
func (l *tlsLayer) candidate(b []byte) (at, length int) {
	for at = 0; at+recordHeader <= len(b); at++ {
		if !isRecordHeader(b[at:]) {
			continue
		}
		n := int(binary.BigEndian.Uint16(b[at+3:]))
		if n <= int(l.overhead())-recordHeader || n > maxRecord {
			continue
		}
		n += recordHeader
		if rest := b[min(len(b), at+n):]; len(rest) >= 3 && !isRecordHeader(rest) {
			continue
		}
		return at, n
	}
	return at, 0
}

func isRecordHeader(b []byte) bool {
	return b[0] >= recordCCS && b[0] <= recordData && b[1] == 3 && b[2] == 3
}

// overhead is by how many bytes a record is longer than what is in it, unless
// it is padded.
func (l *tlsLayer) overhead() int64 {
	const tag, innerType = 16, 1
	if l.hello.version == version13 {
		return recordHeader + tag + innerType
	}
	return recordHeader + tag + int64(12-l.hello.suite.salt)
}

// sequence returns how many records are missing before rec, if it opens.
func (l *tlsLayer) sequence(dir captures.Direction, rec []byte) (ahead uint64, ok bool) {
	d := &l.dirs[dir]
	from := d.protect.seq
	defer func() { d.protect.seq = from }()
	most := min(maxSeqAhead, uint64(d.gap.bytes/l.overhead())+1)
	for ahead = 1; ahead <= most && d.gap.tried <= maxTried; ahead++ {
		d.protect.seq = from + ahead
		d.gap.tried += int64(len(rec))
		open := d.protect.open12
		if l.hello.version == version13 {
			open = d.protect.open13
		}
		if _, err := open(rec); err == nil {
			return ahead, true
		}
	}
	return 0, false
}

// lose goes on where a body's length tells how much of it is missing.
func (h *http1) lose(dir captures.Direction, n int64, why string) bool {
	in, d := &h.s.in[dir], &h.dirs[dir]
	switch {
	case in.len() > 0:
		return false // within a header section or a line
	case h.tunnel != nil:
		h.tunnel.lost(dir, n, why)
	case h.raw != nil:
		h.raw.lost = why
	case d.x == nil || d.state != inBody && d.state != inChunk || d.left >= 0 && n > d.left:
		return false
	default:
		d.x.lost = why
		if d.left >= 0 {
			h.passOver(dir, n)
		}
	}
	in.jump(n)
	return true
}

// passOver counts missing bytes of a body.
func (h *http1) passOver(dir captures.Direction, n int64) {
	d := &h.dirs[dir]
	if d.left -= n; d.left > 0 {
		return
	}
	if d.state == inChunk {
		d.state = afterChunk
		return
	}
	d.x.finishAt(h, dir, h.s.conn.last)
}

// A frameGap is where a direction of HTTP/2 stands behind a loss.
type frameGap struct {
	skip   int64  // bytes that are left of the frame in which the loss was
	ends   uint32 // the stream that ends with that frame
	search bool   // the next frame has to be found
	why    string // the last loss
}

// lose goes on with the next frame. A loss within one DATA frame concerns its
// stream only. Any other concerns all streams, and the header table: what was
// told before is not known any more.
func (l *http2Layer) lose(dir captures.Direction, n int64, why string) bool {
	d, in := &l.dirs[dir], &l.s.in[dir]
	d.gap.why = why
	b := in.bytes()
	switch {
	case d.gap.skip >= n:
		d.gap.skip -= n
		in.jump(n)
		return true
	case d.gap.skip == 0 && !d.gap.search && len(b) >= frameHeader && int64(len(b))+n <= frameSize(b):
		d.gap.skip = frameSize(b) - int64(len(b)) - n
	default:
		d.gap.skip, d.gap.ends, d.gap.search = 0, 0, true
	}
	id, inData := frameStream(b), !d.gap.search && b[3] == byte(http2.FrameData)
	for stream, st := range l.streams {
		if !st.x.done[dir] && (!inData || stream == id) {
			st.x.lost = why
		}
	}
	if inData && http2.Flags(b[4]).Has(http2.FlagDataEndStream) {
		d.gap.ends = id
	}
	if !inData {
		d.forget()
	}
	d.block = block{}
	d.newFramer(in)
	in.jump(n)
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

// recover goes on behind a loss; it reports whether a frame begins next.
func (l *http2Layer) recover(dir captures.Direction) bool {
	d, in := &l.dirs[dir], &l.s.in[dir]
	if d.gap.skip > 0 {
		n := int(min(d.gap.skip, int64(in.len())))
		t := in.time(n)
		in.take(n)
		if d.gap.skip -= int64(n); d.gap.skip > 0 {
			return false
		}
		if d.gap.ends != 0 {
			l.finish(dir, d.gap.ends, t)
			d.gap.ends = 0
		}
	}
	return !d.gap.search || l.findFrame(dir)
}

// findFrame looks for bytes that can only be a frame's header: of a stream that
// is there or could be, with another such header behind the frame.
func (l *http2Layer) findFrame(dir captures.Direction) bool {
	d, in := &l.dirs[dir], &l.s.in[dir]
	b := in.bytes()
	for at := 0; at+frameHeader <= len(b); at++ {
		if !l.plausible(dir, b[at:]) {
			continue
		}
		end := int64(at) + frameSize(b[at:])
		if end > int64(len(b)) && !in.closed && end-int64(at) <= maxResync {
			in.take(at)
			return false // its end will tell
		}
		if rest := b[min(end, int64(len(b))):]; len(rest) >= frameHeader && !l.plausible(dir, rest) {
			continue
		}
		in.take(at)
		d.gap.search = false
		return true
	}
	if in.len() > maxResync {
		l.s.fail(dir, d.gap.why+"; no frame was found behind it")
	} else if n := in.len() - frameHeader + 1; n > 0 {
		in.take(n)
	}
	return false
}

// plausible reports whether b begins with a frame's header. CONTINUATION is
// not: what it continues is lost.
func (l *http2Layer) plausible(dir captures.Direction, b []byte) bool {
	size, id := frameSize(b)-frameHeader, frameStream(b)
	if b[5]&0x80 != 0 || size > maxFrame-frameHeader {
		return false
	}
	known := l.streams[id] != nil
	switch http2.FrameType(b[3]) {
	case http2.FrameData:
		return known || id%2 == 1 && id <= l.highest
	case http2.FrameHeaders:
		return size > 0 && size <= maxBlock && (known || id%2 == 1 && id < l.highest+1<<16)
	case http2.FrameRSTStream:
		return size == 4 && (known || id%2 == 1 && id < l.highest+1<<16)
	case http2.FrameWindowUpdate:
		return size == 4 && (id == 0 || known || id <= l.highest)
	case http2.FrameSettings:
		return id == 0 && size%6 == 0 && size <= 6*64
	case http2.FramePing:
		return id == 0 && size == 8
	case http2.FrameGoAway:
		return id == 0 && size >= 8 && size < 1<<14
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
	// The other side's SETTINGS say how large it may become. They may be
	// seen late, so what is allowed is what we bear.
	d.hpack.SetAllowedMaxDynamicTableSize(maxTable)
	d.hpack.SetMaxStringLength(maxSection)
	d.hpack.SetEmitFunc(d.field)
}

// forget makes a header table in which every entry is unknown. Entries are told
// by their distance from the newest, so those that are added from now on have
// the right numbers whatever was lost.
func (d *http2Direction) forget() {
	d.newTable(maxTable)
	d.hpack.SetEmitEnabled(false)
	entry := []byte{0x40, byte(len(unknownName)), unknownName[0], 0} // a literal that is added, without a value
	for range unknownEntries {
		_, _ = d.hpack.Write(entry) // well-formed
	}
	_ = d.hpack.Close()
	d.hpack.SetEmitEnabled(true)
}
