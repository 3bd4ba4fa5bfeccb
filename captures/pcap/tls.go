package pcap

import (
	"encoding/binary"
	"fmt"
	"time"

	"unwire/captures"
)

// Types of TLS records.
const (
	recordCCS       = 20
	recordAlert     = 21
	recordHandshake = 22
	recordData      = 23
)

const (
	// maxRecord limits the payload of a TLS record, in bytes.
	maxRecord = 16384 + 2048
	// maxSkippedEarlyData limits the rejected early data (0-RTT) that may be skipped, in bytes.
	maxSkippedEarlyData = 1 << 20
)

// A tlsLayer decrypts the records of a TLS connection with keys from the key log, and passes their contents to
// an inner session, which detects the protocol inside TLS.
//
// Source: RFC 5246 section 6, RFC 8446 section 5.
type tlsLayer struct {
	// outer is the session whose byte streams are the TLS records.
	outer *session
	// inner is the session that receives the decrypted contents of the records.
	inner *session
	// secrets are the key log's secrets of the TLS session; nil if they are not known yet.
	secrets *sessionSecrets
	// handshake contains the negotiated parameters of the TLS session.
	handshake handshakeState
	// dirs are the states of decrypting the two directions, indexed by captures.Direction.
	dirs [2]tlsDirection

	// awaiting means that both directions wait for keys, because the client may still log them.
	awaiting bool

	// keysNeededAt is the offset in the server's bytes of the first record that needs the keys, for the report.
	keysNeededAt int64
}

// A handshakeState contains the parameters of the ClientHello and the ServerHello of a TLS connection.
type handshakeState struct {
	// sawClient means that the ClientHello was read; a renegotiation resets it.
	sawClient bool
	// sawServer means that the ServerHello was read; a renegotiation resets it.
	sawServer bool
	// clientRandom is the random value of the ClientHello, by which a key log identifies the session.
	clientRandom [32]byte
	// serverRandom is the random value of the ServerHello, from which TLS 1.2 derives its keys.
	serverRandom [32]byte
	// version is the TLS version that the server chose, as on the wire, such as 0x0304 for TLS 1.3.
	version uint16
	// suite is the cipher suite that the server chose; nil if it is unknown or cannot be decrypted.
	suite *cipherSuite
	// earlyData means that the client offers TLS 1.3 early data (0-RTT).
	earlyData bool
	// hasKeys means that the key log contains the keys of the session.
	hasKeys bool

	// retry is the state of a HelloRetryRequest; 0 if there was none.
	retry retryState
}

// A retryState is the state of a HelloRetryRequest in TLS 1.3. The second ClientHello has the random of the
// first, so both have the same keys.
//
// Source: RFC 8446 section 4.1.4.
type retryState uint8

const (
	// retryRequested means that the server sent a HelloRetryRequest, so a second ClientHello must follow.
	retryRequested retryState = iota + 1

	// retryAnswered means that the second ClientHello was read.
	retryAnswered
)

// A tlsDirection is the state of TLS decryption in one direction.
type tlsDirection struct {
	// phase selects the secret that currently encrypts the direction (TLS 1.3 only).
	phase phase
	// keys decrypts the direction's records; nil while they are in cleartext.
	keys *recordKeys
	// secret is the traffic secret of TLS 1.3 from which keys were derived.
	secret []byte
	// handshake buffers an incomplete handshake message.
	handshake []byte
	// skipped counts the bytes of rejected early data that were skipped.
	skipped int

	// gap describes how decryption continues after packets were lost; the zero value means that none were.
	gap recordGap
}

// A phase is the stage of a TLS 1.3 connection, which determines the keys of a direction.
type phase uint8

const (
	// phaseClear is before any keys, phaseEarly is early data (0-RTT), phaseHandshake the encrypted part of the
	// handshake, and phaseApplication the rest.
	phaseClear phase = iota
	phaseEarly
	phaseHandshake
	phaseApplication
)

// newTLS returns the TLS parser for the bytes of s.
func newTLS(s *session) *tlsLayer {
	inner := newSession(s.conn, true, s.depth)
	inner.target = s.target
	return &tlsLayer{outer: s, inner: inner}
}

// step decrypts the complete TLS records of a direction. It stops at a record whose keys depend on the other
// direction.
func (l *tlsLayer) step(dir captures.Direction) {
	in, d := &l.outer.inboxes[dir], &l.dirs[dir]
	for in.len() >= recordHeader && !l.awaiting {
		if d.gap.missing > 0 && !l.findRecord(dir) {
			break
		}

		// A record is processed only when it is complete.
		b := in.bytes()
		kind, length := b[0], int(binary.BigEndian.Uint16(b[3:]))
		if !isTLS(b) || length > maxRecord {
			l.outer.fail(dir, "the bytes are not a TLS record")
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
			// The direction has failed meanwhile.
			break
		}
		in.discard(recordHeader + length)
	}

	// The inner session ends when all records are processed.
	if in.closed && !l.awaiting {
		if d.gap.missing > 0 {
			l.inner.fail(dir, d.gap.reason)
		}
		l.inner.end(dir, in.ending)
	}
}

// close ends the session inside TLS.
func (l *tlsLayer) close() {
	l.inner.end(up, l.outer.inboxes[up].ending)
	l.inner.end(down, l.outer.inboxes[down].ending)
}

// mustWait reports whether a record of this direction and type can only be processed after the other side's
// hello message.
func (l *tlsLayer) mustWait(dir captures.Direction, kind byte) bool {
	if !l.outer.mayWait(dir) {
		return false
	}
	if dir == down {
		return !l.handshake.sawClient || l.handshake.retry == retryRequested
	}
	if l.handshake.retry == retryRequested {
		// The second ClientHello comes after a ChangeCipherSpec record and rejected early data.
		return false
	}
	return !l.handshake.sawServer && (kind == recordCCS || kind == recordData)
}

// readRecord processes one TLS record of type kind, which was complete at time t. rec includes the record
// header.
func (l *tlsLayer) readRecord(dir captures.Direction, kind byte, rec []byte, t time.Time) error {
	d := &l.dirs[dir]
	body := rec[recordHeader:]
	if l.handshake.version == version13 {
		if kind == recordData {
			return l.readRecord13(dir, rec, t)
		}
		if kind != recordHandshake {
			// This is a ChangeCipherSpec for compatibility, or a cleartext alert.
			return nil
		}
		if d.phase != phaseClear {
			// This is an unexpected ClientHello.
			return nil
		}
	}

	// In TLS 1.2, records are encrypted after ChangeCipherSpec.
	if d.keys != nil {
		plain, err := d.keys.open12(rec)
		if err != nil {
			return err
		}
		body = plain
	}

	// The record is readable from here on.
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

// readAlert ends a direction if an alert is a close_notify. An RST after that loses no data.
func (l *tlsLayer) readAlert(dir captures.Direction, t time.Time, body []byte) {
	// The first byte of an alert is its level.
	const closeNotify = 0
	if len(body) == 2 && body[1] == closeNotify {
		l.inner.end(dir, ending{t: t})
	}
}

// missingHandshake returns an error that says which part of the handshake was not captured.
func (l *tlsLayer) missingHandshake() error {
	switch {
	case !l.handshake.sawClient:
		return fmt.Errorf("the beginning of the TLS handshake (ClientHello) was not recorded")
	case !l.handshake.sawServer:
		return fmt.Errorf("the server's part of the TLS handshake (ServerHello) was not recorded")
	}
	return fmt.Errorf("the TLS handshake was not recorded completely: application data precedes the end of the handshake")
}

// readRecord13 processes an encrypted TLS 1.3 record. The true type of the record is the last byte of the
// decrypted content that is not padding.
func (l *tlsLayer) readRecord13(dir captures.Direction, rec []byte, t time.Time) error {
	d := &l.dirs[dir]
	plain, err := l.open13(dir, rec)
	if err != nil || plain == nil {
		return err
	}

	// Remove the padding: zeros after the type.
	n := len(plain)
	for n > 0 && plain[n-1] == 0 {
		n--
	}
	if n == 0 {
		return fmt.Errorf("a decrypted TLS record has no type")
	}
	switch kind, body := plain[n-1], plain[:n-1]; kind {
	case recordHandshake:
		return l.readHandshake(dir, body)
	case recordData:
		if d.phase == phaseHandshake {
			return fmt.Errorf("application data precedes the end of the TLS handshake")
		}
		l.inner.feed(dir, t, body)
	case recordAlert:
		l.readAlert(dir, t, body)
	}
	return nil
}

// open13 decrypts a TLS 1.3 record with the keys of the current phase. It returns nil for a record to be
// skipped, such as early data without a key. If the key log has no handshake secrets, the records of the
// handshake are skipped until one can be decrypted with the first application key.
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
		if d.skipped > maxSkippedEarlyData {
			return nil, fmt.Errorf("no key in the key log decrypts this TLS record")
		}
		l.outer.conn.addUndecoded(dir, l.outer.inboxes[dir].offset, "early data that was rejected, or whose key is not in the key log")
		return nil, nil
	}

	// The keys of the phase are known, so a failure is an error.
	if d.keys != nil {
		return d.keys.open13(rec)
	}

	// Without handshake secrets, find the first record of the application.
	plain, err := l.tryPhase(dir, phaseApplication, rec)
	if err == nil {
		return plain, nil
	}
	if l.handshake.retry == retryRequested {
		l.outer.conn.addUndecoded(dir, l.outer.inboxes[dir].offset, "early data that was rejected")
	}
	d.skipped += len(rec)
	if d.skipped > maxSkippedEarlyData {
		return nil, fmt.Errorf("no key in the key log decrypts this TLS record")
	}
	return nil, nil
}

// tryPhase decrypts a TLS 1.3 record with the first keys of phase p. If that succeeds, the direction enters the
// phase.
func (l *tlsLayer) tryPhase(dir captures.Direction, p phase, rec []byte) ([]byte, error) {
	secret := l.trafficSecret(dir, p)
	if secret == nil {
		return nil, errNoKey
	}
	protect, err := l.handshake.suite.keys13(secret)
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

// trafficSecret returns the secret of a phase and direction from the key log, or nil.
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

// enterPhase switches a direction to the keys of a TLS 1.3 phase. If the key log lacks the phase's secret, the
// direction has no keys.
func (l *tlsLayer) enterPhase(dir captures.Direction, p phase) {
	d := &l.dirs[dir]
	d.phase, d.secret, d.keys = p, l.trafficSecret(dir, p), nil
	if d.secret == nil {
		return
	}
	protect, err := l.handshake.suite.keys13(d.secret)
	// The secret has the wrong length.
	if err != nil {
		return
	}
	d.keys = protect
}

// rekey12 switches a direction to the negotiated keys of TLS 1.2, after its ChangeCipherSpec message.
func (l *tlsLayer) rekey12(dir captures.Direction) error {
	h := &l.handshake
	if !h.sawClient || !h.sawServer || h.suite == nil {
		return l.missingHandshake()
	}
	if err := l.lookUpKeys(); err != nil {
		return err
	}
	protect, err := h.suite.keys12(l.secrets.master, h.clientRandom, h.serverRandom, dir)
	if err != nil {
		return err
	}
	l.dirs[dir].keys = protect
	return nil
}

// applyKeys looks up the keys of the TLS session and starts using them. Without keys, it ends both directions,
// or makes them wait if the client may still log the keys.
func (l *tlsLayer) applyKeys() {
	c := l.outer.conn
	err := l.lookUpKeys()
	if awaiting := err != nil && c.awaitLateKeys; awaiting != l.awaiting {
		l.awaiting = awaiting
		if awaiting {
			c.awaitingKeys++
		} else {
			c.awaitingKeys--
		}
	}

	// In TLS 1.3, the next records use the keys of the handshake.
	switch {
	case l.awaiting:
	case err != nil:
		c.report.NoKey, c.unknownClientRandom = c.report.NoKey || l.secrets == nil, l.handshake.clientRandom
		c.addUndecoded(down, l.keysNeededAt, err.Error())
		l.outer.failBoth(down, err.Error())
	case l.handshake.version == version13:
		l.enterPhase(down, phaseHandshake)
		if l.handshake.earlyData {
			l.enterPhase(up, phaseEarly)
		} else {
			l.enterPhase(up, phaseHandshake)
		}
	}
}

// retryKeys looks up the keys of waiting TLS layers again, because the key log has grown or waiting must end.
func (s *session) retryKeys() {
	switch l := s.layer.(type) {
	case *tlsLayer:
		if l.awaiting {
			l.applyKeys()
			s.run()
		}
		l.inner.retryKeys()
	case *http1Layer:
		if l.tunnel != nil {
			l.tunnel.retryKeys()
		}
	}
}

// awaitsKeys reports whether the session carries TLS that waits for keys to be logged.
func (s *session) awaitsKeys() bool {
	l, ok := s.layer.(*tlsLayer)
	return ok && l.awaiting
}

// lookUpKeys looks up the TLS session's secrets in the key log by its client random.
func (l *tlsLayer) lookUpKeys() error {
	if l.handshake.hasKeys {
		return nil
	}
	l.secrets = l.outer.conn.keys.sessions[l.handshake.clientRandom]
	if l.secrets == nil {
		return fmt.Errorf("the key log has no key for this TLS session (client random %x)", l.handshake.clientRandom)
	}
	if l.handshake.version == version12 && l.secrets.master == nil {
		return fmt.Errorf("the key log has no CLIENT_RANDOM line for this TLS session (client random %x)", l.handshake.clientRandom)
	}
	if l.handshake.version == version13 && (l.secrets.clientApplication == nil || l.secrets.serverApplication == nil) {
		return fmt.Errorf("the key log has no traffic secrets for this TLS session (client random %x)", l.handshake.clientRandom)
	}
	l.handshake.hasKeys = true
	return nil
}

// tick ends expired waits of the session inside TLS.
func (l *tlsLayer) tick(passed time.Time) { l.inner.tick(passed) }
