package pcap

import (
	"encoding/binary"
	"fmt"
	"time"

	"unwire/captures"
)

// Record types.
const (
	recordCCS       = 20
	recordAlert     = 21
	recordHandshake = 22
	recordData      = 23
)

const (
	maxRecord = 16384 + 2048 // bytes of a record's fragment
	maxEarly  = 1 << 20      // bytes of early data that may be passed over
)

// A tlsLayer opens the records of a TLS connection and feeds what is in them
// to the session within.
//
// Source: RFC 5246 section 6, RFC 8446 section 5.
type tlsLayer struct {
	raw, inner *session
	secrets    *sessionKeys
	hello      helloState
	dirs       [2]tlsDirection
}

// A helloState is what the hellos tell.
type helloState struct {
	client, server bool // which was seen; a renegotiation begins anew
	random, answer [32]byte
	version        uint16
	suite          *suite
	early          bool // the client offers early data
	keyed          bool // the key log was asked
}

// A tlsDirection is the state of one direction's records.
type tlsDirection struct {
	phase     phase
	protect   *protection // nil: cleartext
	secret    []byte      // TLS 1.3: what protect was made of
	handshake []byte      // a message that is not complete
	skipped   int         // bytes of early data passed over
	gap       recordGap
}

// A phase says which TLS 1.3 keys a direction uses.
type phase uint8

const (
	phaseClear phase = iota
	phaseEarly
	phaseHandshake
	phaseApplication
)

func newTLS(s *session) *tlsLayer {
	return &tlsLayer{raw: s, inner: newSession(s.conn, true, s.depth)}
}

// step opens the records of a direction, as far as the other one has come.
func (l *tlsLayer) step(dir captures.Direction) {
	in, d := &l.raw.in[dir], &l.dirs[dir]
	for in.len() >= recordHeader {
		if d.gap.bytes > 0 && !l.findRecord(dir) {
			break
		}
		b := in.bytes()
		kind, length := b[0], int(binary.BigEndian.Uint16(b[3:]))
		if !isTLS(b) || length > maxRecord {
			l.raw.fail(dir, "not a TLS record")
			break
		}
		if len(b) < recordHeader+length {
			break
		}
		if l.mustWait(dir, kind) {
			return
		}
		t := in.time(recordHeader + length)
		if err := l.record(dir, kind, b[:recordHeader+length], t); err != nil {
			l.raw.fail(dir, err.Error())
			break
		}
		if in.closed && in.len() == 0 {
			break // given up meanwhile
		}
		in.take(recordHeader + length)
	}
	if in.closed {
		if d.gap.bytes > 0 {
			l.inner.fail(dir, d.gap.why)
		}
		l.inner.end(dir, in.ending)
	}
}

func (l *tlsLayer) close() {
	l.inner.end(up, l.raw.in[up].ending)
	l.inner.end(down, l.raw.in[down].ending)
}

// mustWait reports whether the other direction's hello is needed first.
func (l *tlsLayer) mustWait(dir captures.Direction, kind byte) bool {
	if !l.raw.waits(dir) {
		return false
	}
	if dir == down {
		return !l.hello.client
	}
	return !l.hello.server && (kind == recordCCS || kind == recordData)
}

// record takes one record, header included.
func (l *tlsLayer) record(dir captures.Direction, kind byte, rec []byte, t time.Time) error {
	d := &l.dirs[dir]
	body := rec[recordHeader:]
	if l.hello.version == version13 {
		if kind == recordData {
			return l.sealed13(dir, rec, t)
		}
		if kind != recordHandshake {
			return nil // a compatibility CCS, or an alert in clear
		}
	}
	if d.protect != nil {
		plain, err := d.protect.open12(rec)
		if err != nil {
			return err
		}
		body = plain
	}
	switch kind {
	case recordHandshake:
		return l.messages(dir, body)
	case recordCCS:
		return l.rekey12(dir)
	case recordData:
		if d.protect == nil {
			return l.noHandshake()
		}
		l.inner.feed(dir, t, body)
	}
	return nil
}

func (l *tlsLayer) noHandshake() error {
	switch {
	case !l.hello.client:
		return fmt.Errorf("handshake missing: no ClientHello")
	case !l.hello.server:
		return fmt.Errorf("handshake missing: no ServerHello")
	}
	return fmt.Errorf("handshake missing: data before its end")
}

// sealed13 takes a TLS 1.3 record whose type is inside.
func (l *tlsLayer) sealed13(dir captures.Direction, rec []byte, t time.Time) error {
	d := &l.dirs[dir]
	plain, err := l.open13(dir, rec)
	if err != nil || plain == nil {
		return err
	}
	n := len(plain)
	for n > 0 && plain[n-1] == 0 {
		n--
	}
	if n == 0 {
		return fmt.Errorf("a TLS record without a type")
	}
	switch kind, body := plain[n-1], plain[:n-1]; kind {
	case recordHandshake:
		return l.messages(dir, body)
	case recordData:
		if d.phase == phaseHandshake {
			return fmt.Errorf("TLS data within the handshake")
		}
		l.inner.feed(dir, t, body)
	}
	return nil
}

// open13 opens a record with the keys of the phase. A nil text is early data
// that nobody can read. A key log without handshake secrets is enough for what
// follows the handshake: its records are passed over up to the first that the
// application's key opens.
func (l *tlsLayer) open13(dir captures.Direction, rec []byte) ([]byte, error) {
	d := &l.dirs[dir]
	if d.phase == phaseEarly {
		if d.protect != nil {
			if plain, err := d.protect.open13(rec); err == nil {
				return plain, nil
			}
		}
		if plain, err := l.try(dir, phaseHandshake, rec); err == nil {
			return plain, nil
		}
		d.skipped += len(rec)
		if d.skipped > maxEarly {
			return nil, fmt.Errorf("no key opens this record")
		}
		l.raw.conn.remark(dir, l.raw.in[dir].offset, "early data that was rejected, or whose key is not in the key log")
		return nil, nil
	}
	if d.protect != nil {
		return d.protect.open13(rec)
	}
	plain, err := l.try(dir, phaseApplication, rec)
	if err == nil {
		return plain, nil
	}
	d.skipped += len(rec)
	if d.skipped > maxEarly {
		return nil, fmt.Errorf("no key opens this record")
	}
	return nil, nil
}

// try opens a record with the first keys of a phase, and enters it if they fit.
func (l *tlsLayer) try(dir captures.Direction, p phase, rec []byte) ([]byte, error) {
	secret := l.trafficSecret(dir, p)
	if secret == nil {
		return nil, errNoKey
	}
	protect, err := l.hello.suite.traffic13(secret)
	if err != nil {
		return nil, err
	}
	plain, err := protect.open13(rec)
	if err != nil {
		return nil, err
	}
	l.enter(dir, p)
	l.dirs[dir].protect.seq = protect.seq
	return plain, nil
}

func (l *tlsLayer) trafficSecret(dir captures.Direction, p phase) []byte {
	k := l.secrets
	switch {
	case k == nil:
		return nil
	case p == phaseEarly:
		return k.early
	case p == phaseHandshake && dir == up:
		return k.clientHandshake
	case p == phaseHandshake:
		return k.serverHandshake
	case dir == up:
		return k.clientApplication
	}
	return k.serverApplication
}

// enter makes a direction use the keys of a phase; without one, none.
func (l *tlsLayer) enter(dir captures.Direction, p phase) {
	d := &l.dirs[dir]
	d.phase, d.secret, d.protect = p, l.trafficSecret(dir, p), nil
	if d.secret == nil {
		return
	}
	protect, err := l.hello.suite.traffic13(d.secret)
	if err != nil { // a secret of the wrong length
		return
	}
	d.protect = protect
}

// rekey12 makes a direction use the keys of the handshake, after its CCS.
func (l *tlsLayer) rekey12(dir captures.Direction) error {
	h := &l.hello
	if !h.client || !h.server || h.suite == nil {
		return l.noHandshake()
	}
	if err := l.findKeys(); err != nil {
		return err
	}
	protect, err := h.suite.traffic12(l.secrets.master, h.random, h.answer, dir)
	if err != nil {
		return err
	}
	l.dirs[dir].protect = protect
	return nil
}

// findKeys asks the key log for the session.
func (l *tlsLayer) findKeys() error {
	if l.hello.keyed {
		return nil
	}
	l.secrets = l.raw.conn.keys.sessions[l.hello.random]
	if l.secrets == nil {
		l.raw.conn.report.NoKey = true
		return fmt.Errorf("no key for this session (client random %x)", l.hello.random)
	}
	if l.hello.version == version12 && l.secrets.master == nil {
		return fmt.Errorf("no CLIENT_RANDOM key for this session (client random %x)", l.hello.random)
	}
	if l.hello.version == version13 && (l.secrets.clientApplication == nil || l.secrets.serverApplication == nil) {
		return fmt.Errorf("the key log has no traffic secrets of this session (client random %x)", l.hello.random)
	}
	l.hello.keyed = true
	return nil
}
