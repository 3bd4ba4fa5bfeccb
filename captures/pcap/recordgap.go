package pcap

import (
	"cmp"
	"encoding/binary"

	"unwire/captures"
)

// Limits of the search for the next record behind a loss.
const (
	// maxSeqAhead is how many records may be lost at once.
	maxSeqAhead = 2048

	// maxTrials is how many places in a row may look like a record that cannot be
	// decrypted.
	maxTrials = 16

	// maxTried is how many bytes of a connection's direction are decrypted in vain.
	maxTried = 256 << 20
)

// A recordGap is a run of bytes without whole records.
type recordGap struct {
	bytes  int64  // of it; 0: there is none
	why    string // it is there
	trials int
	tried  int64 // bytes, in all gaps
}

// skipLost goes on where the application's key is in use: later records open under
// a sequence number that is somewhat higher.
func (l *tlsLayer) skipLost(dir captures.Direction, n int64, why string) bool {
	d, in := &l.dirs[dir], &l.outer.inboxes[dir]
	if d.keys == nil || l.hello.version == version13 && d.phase != phaseApplication {
		return false
	}
	d.gap.bytes += int64(in.len()) + n
	d.gap.why, d.gap.trials, d.handshake = cmp.Or(d.gap.why, why), 0, nil
	in.skip(n)
	return true
}

// findRecord looks for the first whole record after a gap, reports the number of missing
// bytes to the inner session, and returns whether it found one. If it finds none, it
// gives the direction up.
func (l *tlsLayer) findRecord(dir captures.Direction) bool {
	d, in := &l.dirs[dir], &l.outer.inboxes[dir]
	for in.len() >= recordHeader {
		b := in.bytes()
		at, length := l.findCandidate(b)
		in.discard(at)
		d.gap.bytes += int64(at)
		if length == 0 || len(b) < at+length {
			return false // more will tell
		}
		if ahead, ok := l.findSequence(dir, b[at:at+length]); ok {
			d.keys.seq += ahead
			lost, why := d.gap.bytes-int64(ahead)*l.overhead(), d.gap.why
			d.gap = recordGap{tried: d.gap.tried}
			l.inner.reportLoss(dir, max(lost, 0), why)
			return true
		}
		in.discard(1)
		d.gap.bytes++
		if d.gap.trials++; d.gap.trials > maxTrials || d.gap.tried > maxTried {
			l.outer.fail(dir, d.gap.why+"; no record behind it opens")
			return false
		}
	}
	return false
}

// findCandidate returns where in b something looks like a record, and how long that
// is; 0 if nothing does up to that place.
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

func isRecordHeader(b []byte) bool {
	return b[0] >= recordCCS && b[0] <= recordData && b[1] == 3 && b[2] == 3
}

// overhead is the number of bytes by which a record is longer than its content, without
// padding.
func (l *tlsLayer) overhead() int64 {
	const tag, innerType = 16, 1
	if l.hello.version == version13 {
		return recordHeader + tag + innerType
	}
	return recordHeader + tag + int64(12-l.hello.suite.saltLen)
}

// findSequence returns how many records are missing before rec, if it opens.
func (l *tlsLayer) findSequence(dir captures.Direction, rec []byte) (ahead uint64, ok bool) {
	d := &l.dirs[dir]
	from := d.keys.seq
	defer func() { d.keys.seq = from }()
	most := min(maxSeqAhead, uint64(d.gap.bytes/l.overhead())+1)
	for ahead = 1; ahead <= most && d.gap.tried <= maxTried; ahead++ {
		d.keys.seq = from + ahead
		d.gap.tried += int64(len(rec))
		open := d.keys.open12
		if l.hello.version == version13 {
			open = d.keys.open13
		}
		if _, err := open(rec); err == nil {
			return ahead, true
		}
	}
	return 0, false
}
