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
	outer, inner *session
	secrets      *sessionSecrets
	hello        helloState
	dirs         [2]tlsDirection

	// awaiting is set while both directions wait for keys that may still be logged.
	awaiting bool

	// keysNeededAt is where the server's bytes are that need the keys.
	keysNeededAt int64
}

// A helloState is what the hellos tell.
type helloState struct {
	sawClient, sawServer       bool // which was seen; a renegotiation begins anew
	clientRandom, serverRandom [32]byte
	version                    uint16
	suite                      *suite
	earlyData                  bool // the client offers early data
	hasKeys                    bool // the key log was asked
	retry                      retryState
}

// A retryState says how far a HelloRetryRequest of TLS 1.3 is. The second ClientHello has
// the random of the first one, so both have the same keys.
//
// Source: RFC 8446 section 4.1.4.
type retryState uint8

const (
	// retryRequested: the second ClientHello is to come.
	retryRequested retryState = iota + 1

	// retryAnswered: the second ClientHello came.
	retryAnswered
)

// A tlsDirection is the state of one direction's records.
type tlsDirection struct {
	phase     phase
	keys      *recordKeys // nil: cleartext
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
	inner := newSession(s.conn, true, s.depth)
	inner.target = s.target
	return &tlsLayer{outer: s, inner: inner}
}

// step opens the records of a direction, as far as the other one has come.
func (l *tlsLayer) step(dir captures.Direction) {
	in, d := &l.outer.inboxes[dir], &l.dirs[dir]
	for in.len() >= recordHeader && !l.awaiting {
		if d.gap.bytes > 0 && !l.findRecord(dir) {
			break
		}
		b := in.bytes()
		kind, length := b[0], int(binary.BigEndian.Uint16(b[3:]))
		if !isTLS(b) || length > maxRecord {
			l.outer.fail(dir, "not a TLS record")
			break
		}
		if len(b) < recordHeader+length {
			break
		}
		if l.mustWait(dir, kind) {
			return
		}
		t := in.time(recordHeader + length)
		if err := l.readRecord(dir, kind, b[:recordHeader+length], t); err != nil {
			l.outer.fail(dir, err.Error())
			break
		}
		if in.closed && in.len() == 0 {
			break // given up meanwhile
		}
		in.discard(recordHeader + length)
	}
	if in.closed && !l.awaiting {
		if d.gap.bytes > 0 {
			l.inner.fail(dir, d.gap.why)
		}
		l.inner.end(dir, in.ending)
	}
}

func (l *tlsLayer) close() {
	l.inner.end(up, l.outer.inboxes[up].ending)
	l.inner.end(down, l.outer.inboxes[down].ending)
}

// mustWait reports whether the other direction's hello is needed first.
func (l *tlsLayer) mustWait(dir captures.Direction, kind byte) bool {
	if !l.outer.mayWait(dir) {
		return false
	}
	if dir == down {
		return !l.hello.sawClient || l.hello.retry == retryRequested
	}
	if l.hello.retry == retryRequested {
		// The second ClientHello is behind a CCS, and rejected early data.
		return false
	}
	return !l.hello.sawServer && (kind == recordCCS || kind == recordData)
}

// readRecord takes one record, header included.
func (l *tlsLayer) readRecord(dir captures.Direction, kind byte, rec []byte, t time.Time) error {
	d := &l.dirs[dir]
	body := rec[recordHeader:]
	if l.hello.version == version13 {
		if kind == recordData {
			return l.readRecord13(dir, rec, t)
		}
		if kind != recordHandshake {
			return nil // a compatibility CCS, or an alert in clear
		}
		if d.phase != phaseClear {
			return nil // a ClientHello that was not waited for
		}
	}
	if d.keys != nil {
		plain, err := d.keys.open12(rec)
		if err != nil {
			return err
		}
		body = plain
	}
	switch kind {
	case recordHandshake:
		return l.readHandshake(dir, body)
	case recordCCS:
		return l.rekey12(dir)
	case recordData:
		if d.keys == nil {
			return l.missingHandshake()
		}
		l.inner.feed(dir, t, body)
	case recordAlert:
		l.readAlert(dir, t, body)
	}
	return nil
}

// readAlert ends a direction that says so: a reset of the connection may follow, which
// loses nothing then.
func (l *tlsLayer) readAlert(dir captures.Direction, t time.Time, body []byte) {
	const closeNotify = 0 // behind the level
	if len(body) == 2 && body[1] == closeNotify {
		l.inner.end(dir, ending{t: t})
	}
}

func (l *tlsLayer) missingHandshake() error {
	switch {
	case !l.hello.sawClient:
		return fmt.Errorf("handshake missing: no ClientHello")
	case !l.hello.sawServer:
		return fmt.Errorf("handshake missing: no ServerHello")
	}
	return fmt.Errorf("handshake missing: data before its end")
}

// readRecord13 takes a TLS 1.3 record whose type is inside.
func (l *tlsLayer) readRecord13(dir captures.Direction, rec []byte, t time.Time) error {
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
		return l.readHandshake(dir, body)
	case recordData:
		if d.phase == phaseHandshake {
			return fmt.Errorf("TLS data within the handshake")
		}
		l.inner.feed(dir, t, body)
	case recordAlert:
		l.readAlert(dir, t, body)
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
		if d.keys != nil {
			if plain, err := d.keys.open13(rec); err == nil {
				return plain, nil
			}
		}
		if plain, err := l.tryPhase(dir, phaseHandshake, rec); err == nil {
			return plain, nil
		}
		d.skipped += len(rec)
		if d.skipped > maxEarly {
			return nil, fmt.Errorf("no key opens this record")
		}
		l.outer.conn.addUndecoded(dir, l.outer.inboxes[dir].offset, "early data that was rejected, or whose key is not in the key log")
		return nil, nil
	}
	if d.keys != nil {
		return d.keys.open13(rec)
	}
	plain, err := l.tryPhase(dir, phaseApplication, rec)
	if err == nil {
		return plain, nil
	}
	if l.hello.retry == retryRequested {
		l.outer.conn.addUndecoded(dir, l.outer.inboxes[dir].offset, "early data that was rejected")
	}
	d.skipped += len(rec)
	if d.skipped > maxEarly {
		return nil, fmt.Errorf("no key opens this record")
	}
	return nil, nil
}

// tryPhase opens a record with the first keys of a phase, and enters it if they fit.
func (l *tlsLayer) tryPhase(dir captures.Direction, p phase, rec []byte) ([]byte, error) {
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
	l.enterPhase(dir, p)
	l.dirs[dir].keys.seq = protect.seq
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

// enterPhase makes a direction use the keys of a phase; without one, none.
func (l *tlsLayer) enterPhase(dir captures.Direction, p phase) {
	d := &l.dirs[dir]
	d.phase, d.secret, d.keys = p, l.trafficSecret(dir, p), nil
	if d.secret == nil {
		return
	}
	protect, err := l.hello.suite.traffic13(d.secret)
	if err != nil { // a secret of the wrong length
		return
	}
	d.keys = protect
}

// rekey12 makes a direction use the keys of the handshake, after its CCS.
func (l *tlsLayer) rekey12(dir captures.Direction) error {
	h := &l.hello
	if !h.sawClient || !h.sawServer || h.suite == nil {
		return l.missingHandshake()
	}
	if err := l.findKeys(); err != nil {
		return err
	}
	protect, err := h.suite.traffic12(l.secrets.master, h.clientRandom, h.serverRandom, dir)
	if err != nil {
		return err
	}
	l.dirs[dir].keys = protect
	return nil
}

// takeKeys begins to use the keys of the session. Without them, it ends both directions,
// or has them wait if the client may still log the keys.
func (l *tlsLayer) takeKeys() {
	c := l.outer.conn
	err := l.findKeys()
	if awaiting := err != nil && c.live; awaiting != l.awaiting {
		l.awaiting = awaiting
		if awaiting {
			c.awaiting++
		} else {
			c.awaiting--
		}
	}
	switch {
	case l.awaiting:
	case err != nil:
		c.report.NoKey, c.noKeyRandom = c.report.NoKey || l.secrets == nil, l.hello.clientRandom
		c.addUndecoded(down, l.keysNeededAt, err.Error())
		l.outer.failBoth(down, err.Error())
	case l.hello.version == version13:
		l.enterPhase(down, phaseHandshake)
		if l.hello.earlyData {
			l.enterPhase(up, phaseEarly)
		} else {
			l.enterPhase(up, phaseHandshake)
		}
	}
}

// retryKeys looks for the keys of TLS layers that wait for them.
func (s *session) retryKeys() {
	switch l := s.layer.(type) {
	case *tlsLayer:
		if l.awaiting {
			l.takeKeys()
			s.pump()
		}
		l.inner.retryKeys()
	case *http1:
		if l.tunnel != nil {
			l.tunnel.retryKeys()
		}
	}
}

// awaitsKeys reports whether the session's layer is TLS that waits for keys.
func (s *session) awaitsKeys() bool {
	l, ok := s.layer.(*tlsLayer)
	return ok && l.awaiting
}

// findKeys asks the key log for the session.
func (l *tlsLayer) findKeys() error {
	if l.hello.hasKeys {
		return nil
	}
	l.secrets = l.outer.conn.keys.sessions[l.hello.clientRandom]
	if l.secrets == nil {
		return fmt.Errorf("no key for this session (client random %x)", l.hello.clientRandom)
	}
	if l.hello.version == version12 && l.secrets.master == nil {
		return fmt.Errorf("no CLIENT_RANDOM key for this session (client random %x)", l.hello.clientRandom)
	}
	if l.hello.version == version13 && (l.secrets.clientApplication == nil || l.secrets.serverApplication == nil) {
		return fmt.Errorf("the key log has no traffic secrets of this session (client random %x)", l.hello.clientRandom)
	}
	l.hello.hasKeys = true
	return nil
}

func (l *tlsLayer) tick(passed time.Time) { l.inner.tick(passed) }
