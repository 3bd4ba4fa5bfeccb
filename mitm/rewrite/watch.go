package rewrite

import "unwire/decode/envelope"

const (
	// MaxWatched is the size in bytes up to which a relay waits for the rest of a frame, or of a whole body, to find out
	// whether it passes.
	MaxWatched = 16 << 10

	// maxUnpacked is the size in bytes up to which a watched frame is decompressed.
	maxUnpacked = 1 << 20
)

// A Watch is the way in which a relay can forward a body as it comes, as long as all frames pass (Exchange.Passes).
type Watch uint8

const (
	// WatchNot means that the body cannot be watched: Run forwards it.
	WatchNot Watch = iota
	// WatchNothing means that the body has no frames to examine, and passes.
	WatchNothing
	// WatchFrames means that each complete frame can be examined and forwarded (Body.ExamineFrames).
	WatchFrames
	// WatchBody means that nothing may be forwarded before the whole body was examined (Body.ExamineBody).
	WatchBody
)

// Watch returns how a relay can forward the body as it arrives while the rules change nothing. b.Declared must be set
// before. When a rule matches, the relay calls Run with a reader for the bytes that were not examined yet.
func (b *Body) Watch() Watch {
	b.framing = b.Exchange.Framing(b.Dir)
	switch kind := b.framing.Kind; {
	case b.Exchange.Paces(), b.framing.Base64:
		return WatchNot
	case kind == Opaque:
		return WatchNothing
	case kind == Envelopes && b.Declared < 0:
		return WatchFrames
	case (kind == Envelopes || kind == Whole) && b.Declared <= MaxWatched:
		return WatchBody
	}
	return WatchNot
}

// A Mark is a position in a body, to which Body.Reset returns.
type Mark struct {
	// at is the offset in the received body, in bytes.
	at int64
	// number is the number of the next frame, from 0.
	number int
}

// Mark returns the position behind the bytes that were examined or skipped.
func (b *Body) Mark() Mark { return Mark{b.at, b.number} }

// Reset moves the body back to a position that Mark returned.
func (b *Body) Reset(m Mark) { b.at, b.number = m.at, m.number }

// Skip moves the position by n bytes that were forwarded without being examined.
func (b *Body) Skip(n int) { b.at += int64(n) }

// ExamineFrames checks whether the rules leave the complete envelopes at the beginning of p unchanged; p continues
// the body behind what was examined before. passed is the total length of these envelopes in bytes. ok is false if a
// rule would change one or if one is too large; the position then stays.
func (b *Body) ExamineFrames(p []byte) (passed int, ok bool) {
	mark := b.Mark()
	for {
		n, frames := b.Exchange.PassesEnvelopes(b.Dir, p[passed:])
		b.at, b.number, passed = b.at+int64(n), b.number+frames, passed+n
		if len(p)-passed < envelope.PrefixLen {
			break
		}

		// The next envelope is examined more closely.
		prefix := envelope.ParsePrefix(p[passed:])
		size := int64(prefix.Length) + envelope.PrefixLen
		if size <= MaxWatched && int64(len(p)-passed) < size {
			break
		}
		if size > MaxWatched || !b.examineEnvelope(prefix, p[passed:passed+int(size)]) {
			b.Reset(mark)
			return 0, false
		}
		passed += int(size)
	}
	return passed, true
}

// examineEnvelope reports whether the rules leave a complete envelope p unchanged. If so, the position moves behind
// it.
func (b *Body) examineEnvelope(prefix envelope.Prefix, p []byte) bool {
	raw := p[envelope.PrefixLen:]
	data, known := raw, false
	if prefix.Flags&envelope.Compressed != 0 && len(raw) > 0 {
		var err error
		if data, err = envelope.Decompress(b.framing.Encoding, raw, maxUnpacked); err != nil {
			return false
		}
		known = b.Exchange.PassesMessage(b.Dir, prefix.Flags, data)
	}
	if !known && !b.passes(Frame{Framed: true, Flags: prefix.Flags, Received: p, Raw: raw, Data: data}) {
		return false
	}
	b.at, b.number = b.at+int64(len(p)), b.number+1
	return true
}

// passes reports whether the rules leave a frame unchanged, whose direction and number need not be set.
func (b *Body) passes(f Frame) bool {
	f.Dir, f.Number = b.Dir, b.number
	if b.examined == nil {
		b.examined = new(Frame)
	}
	*b.examined = f
	return b.Exchange.Passes(b.examined)
}

// ExamineBody reports whether the rules leave the complete body p unchanged. If so, the position moves to its end;
// otherwise it stays at the beginning.
func (b *Body) ExamineBody(p []byte) bool {
	if b.Declared >= 0 && int64(len(p)) != b.Declared {
		return false
	}
	if b.framing.Kind == Envelopes {
		mark := b.Mark()
		passed, ok := b.ExamineFrames(p)
		if ok = ok && passed == len(p); !ok {
			b.Reset(mark)
		}
		return ok
	}
	data, err := envelope.Decompress(b.framing.Encoding, p, maxUnpacked)
	if err != nil || !b.Exchange.PassesMessage(b.Dir, 0, data) && !b.passes(Frame{Received: p, Raw: p, Data: data}) {
		return false
	}
	b.at, b.number = b.at+int64(len(p)), b.number+1
	return true
}
