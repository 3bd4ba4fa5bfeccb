package pcap

import (
	"cmp"
	"encoding/binary"

	"unwire/captures"
)

// Limits of the search for the next TLS record after a loss.
const (
	// maxSeqAhead limits how many consecutive TLS records may be lost. So many sequence numbers are tried.
	maxSeqAhead = 2048

	// maxCandidates limits the number of positions that look like a TLS record but cannot be decrypted, in a
	// row.
	maxCandidates = 16

	// maxTrialBytes limits the bytes of a direction that are decrypted without success, in total.
	maxTrialBytes = 256 << 20
)

// A recordGap is the state of a TLS direction after lost packets: the bytes since the last complete record.
type recordGap struct {
	// missing is the size of the gap in bytes; 0 means that there is no gap.
	missing int64
	// reason describes the last loss of packets.
	reason string
	// candidates is the number of positions after the gap that were tried as the start of a TLS record,
	// without success.
	candidates int
	// trialBytes is the number of bytes decrypted without success, in total over all gaps of the direction.
	trialBytes int64
}

// resumeAfterLoss notes that n bytes were lost. It returns true if TLS can continue, which is so once
// application data is encrypted: the next record is then found by trying higher sequence numbers. why is the
// reason for errors.
func (l *tlsLayer) resumeAfterLoss(dir captures.Direction, n int64, why string) bool {
	d, in := &l.dirs[dir], &l.outer.inboxes[dir]
	if d.keys == nil || l.handshake.version == version13 && d.phase != phaseApplication {
		return false
	}
	d.gap.missing += int64(in.len()) + n
	d.gap.reason, d.gap.candidates, d.handshake = cmp.Or(d.gap.reason, why), 0, nil
	in.skip(n)
	return true
}

// findRecord searches for the first complete TLS record after a gap, and reports the number of missing bytes to
// the session inside TLS. It returns whether it found one. If too many candidates cannot be decrypted, the
// direction ends.
func (l *tlsLayer) findRecord(dir captures.Direction) bool {
	d, in := &l.dirs[dir], &l.outer.inboxes[dir]
	for in.len() >= recordHeader {
		b := in.bytes()
		at, length := l.findCandidate(b)
		in.discard(at)
		d.gap.missing += int64(at)
		if length == 0 || len(b) < at+length {
			// Wait for more bytes.
			return false
		}

		// Only decryption proves that this is a record.
		if ahead, ok := l.findSequence(dir, b[at:at+length]); ok {
			d.keys.seq += ahead
			lost, why := d.gap.missing-int64(ahead)*l.overhead(), d.gap.reason
			d.gap = recordGap{trialBytes: d.gap.trialBytes}
			l.inner.reportLoss(dir, max(lost, 0), why)
			return true
		}
		in.discard(1)
		d.gap.missing++
		if d.gap.candidates++; d.gap.candidates > maxCandidates || d.gap.trialBytes > maxTrialBytes {
			l.outer.fail(dir, d.gap.reason+"; no later TLS record can be decrypted")
			return false
		}
	}
	return false
}

// findCandidate returns the offset and length of the first bytes in b that look like a TLS record; the length
// is 0 if there are none.
func (l *tlsLayer) findCandidate(b []byte) (at, length int) {
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

// isRecordHeader reports whether b begins with a valid type and version of a TLS record. b has at least 3
// bytes.
func isRecordHeader(b []byte) bool {
	return b[0] >= recordCCS && b[0] <= recordData && b[1] == 3 && b[2] == 3
}

// overhead returns the number of bytes by which an encrypted TLS record is longer than its content, without
// padding.
func (l *tlsLayer) overhead() int64 {
	const tag, innerType = 16, 1
	if l.handshake.version == version13 {
		return recordHeader + tag + innerType
	}
	return recordHeader + tag + int64(12-l.handshake.suite.saltLen)
}

// findSequence tries to decrypt rec, a TLS record, with increasing sequence numbers. ahead is the number of
// records that were lost before it; ok is false if no number fits.
func (l *tlsLayer) findSequence(dir captures.Direction, rec []byte) (ahead uint64, ok bool) {
	d := &l.dirs[dir]
	from := d.keys.seq
	defer func() { d.keys.seq = from }()

	// The size of the gap limits the number of missing records.
	most := min(maxSeqAhead, uint64(d.gap.missing/l.overhead())+1)
	for ahead = 1; ahead <= most && d.gap.trialBytes <= maxTrialBytes; ahead++ {
		d.keys.seq = from + ahead
		d.gap.trialBytes += int64(len(rec))
		open := d.keys.open12
		if l.handshake.version == version13 {
			open = d.keys.open13
		}
		if _, err := open(rec); err == nil {
			return ahead, true
		}
	}
	return 0, false
}
