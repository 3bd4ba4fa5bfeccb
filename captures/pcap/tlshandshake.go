package pcap

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/crypto/cryptobyte"

	"unwire/captures"
)

// Types of TLS handshake messages that are parsed; others are skipped.
const (
	helloClient         = 1
	helloServer         = 2
	endOfEarlyData      = 5
	encryptedExtensions = 8
	finished            = 20
	keyUpdate           = 24

	// maxHandshake limits a handshake message, in bytes.
	maxHandshake = 1 << 20
)

// Types of TLS extensions that are parsed.
const (
	extServerName = 0
	extALPN       = 16
	extEarlyData  = 42
	extVersions   = 43
)

// retryRandom is the random value that marks a ServerHello as a HelloRetryRequest (RFC 8446, section 4.1.3).
var retryRandom = [32]byte{
	0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
	0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
}

// errShort means that a handshake message ends before all its fields.
var errShort = errors.New("a TLS handshake message is too short")

// readHandshake parses the complete TLS handshake messages in p and earlier bytes: type(1) length(3) body.
// Messages may span records.
func (l *tlsLayer) readHandshake(dir captures.Direction, p []byte) error {
	d := &l.dirs[dir]
	if len(d.handshake) > 0 {
		d.handshake = append(d.handshake, p...)
		p = d.handshake
	}
	for len(p) >= 4 {
		n := int(p[1])<<16 | int(p[2])<<8 | int(p[3])
		if n > maxHandshake {
			return fmt.Errorf("a TLS handshake message of %d bytes is too large", n)
		}
		if len(p) < 4+n {
			break
		}
		if err := l.handleMessage(dir, p[0], p[4:4+n]); err != nil {
			return err
		}
		p = p[4+n:]
	}
	d.handshake = append(d.handshake[:0], p...)
	return nil
}

// handleMessage processes a complete TLS handshake message of type kind.
func (l *tlsLayer) handleMessage(dir captures.Direction, kind byte, body []byte) error {
	d := &l.dirs[dir]
	switch {
	case kind == helloClient && dir == up:
		return l.clientHello(body)
	case kind == helloServer && dir == down:
		return l.serverHello(body)
	case l.handshake.version != version13:
	case kind == encryptedExtensions && dir == down:
		return l.eachExtension(cryptobyte.String(body), func(ext uint16, v cryptobyte.String) bool {
			return ext != extALPN || l.readALPN(v)
		})
	case kind == endOfEarlyData && dir == up:
		l.enterPhase(up, phaseHandshake)
	// Finished is the last message under the handshake's keys.
	case kind == finished && d.phase == phaseHandshake:
		l.enterPhase(dir, phaseApplication)
	case kind == keyUpdate && d.phase == phaseApplication:
		d.secret = l.handshake.suite.updatedSecret(d.secret)
		protect, err := l.handshake.suite.keys13(d.secret)
		if err != nil {
			return err
		}
		d.keys = protect
	}
	return nil
}

// clientHello parses the body of a ClientHello: version(2) random(32) session(1) suites(2) compression(1)
// extensions(2). The numbers are sizes in bytes of fields or of their length prefixes.
func (l *tlsLayer) clientHello(body []byte) error {
	s := cryptobyte.String(body)
	var random []byte
	var session, suites, compression cryptobyte.String
	if !s.Skip(2) || !s.ReadBytes(&random, 32) || !s.ReadUint8LengthPrefixed(&session) ||
		!s.ReadUint16LengthPrefixed(&suites) || !s.ReadUint8LengthPrefixed(&compression) {
		return errShort
	}

	// A second ClientHello after a HelloRetryRequest has the same random.
	retry := l.handshake.retry
	if retry == retryRequested {
		retry = retryAnswered
	}
	l.handshake = handshakeState{sawClient: true, clientRandom: [32]byte(random), version: l.handshake.version, retry: retry}
	if s.Empty() {
		return nil
	}

	// Of the extensions, the server name and early data matter.
	return l.eachExtension(s, func(ext uint16, v cryptobyte.String) bool {
		switch ext {
		case extServerName:
			var list, name cryptobyte.String
			var kind uint8
			if !v.ReadUint16LengthPrefixed(&list) || !list.ReadUint8(&kind) || !list.ReadUint16LengthPrefixed(&name) {
				return false
			}
			l.outer.conn.tls.ServerName = string(name)
		case extEarlyData:
			l.handshake.earlyData = true
		}
		return true
	})
}

// eachExtension parses a list of TLS extensions and calls f with the type and contents of each. It is an error
// if f returns false.
func (l *tlsLayer) eachExtension(s cryptobyte.String, f func(ext uint16, v cryptobyte.String) bool) error {
	var list cryptobyte.String
	if !s.ReadUint16LengthPrefixed(&list) {
		return errShort
	}
	for !list.Empty() {
		var ext uint16
		var v cryptobyte.String
		if !list.ReadUint16(&ext) || !list.ReadUint16LengthPrefixed(&v) || !f(ext, v) {
			return errShort
		}
	}
	return nil
}

// readALPN stores the protocol that the server chose from an ALPN extension. It returns false if that is
// invalid.
func (l *tlsLayer) readALPN(v cryptobyte.String) bool {
	var list, name cryptobyte.String
	if !v.ReadUint16LengthPrefixed(&list) || !list.ReadUint8LengthPrefixed(&name) {
		return false
	}
	l.outer.conn.tls.ALPN = string(name)
	return true
}

// serverHello parses the body of a ServerHello: version(2) random(32) session(1) suite(2) compression(1)
// extensions(2). The numbers are sizes in bytes of fields or of their length prefixes.
func (l *tlsLayer) serverHello(body []byte) error {
	s := cryptobyte.String(body)
	var version, id uint16
	var random []byte
	var session cryptobyte.String
	if !s.ReadUint16(&version) || !s.ReadBytes(&random, 32) || !s.ReadUint8LengthPrefixed(&session) ||
		!s.ReadUint16(&id) || !s.Skip(1) {
		return errShort
	}
	if [32]byte(random) == retryRandom {
		l.handshake.version, l.handshake.retry = version13, retryRequested
		return nil
	}

	// In TLS 1.3, the true version is in an extension.
	h := &l.handshake
	if !s.Empty() {
		err := l.eachExtension(s, func(ext uint16, v cryptobyte.String) bool {
			switch ext {
			case extVersions:
				return v.ReadUint16(&version)
			case extALPN:
				return l.readALPN(v)
			}
			return true
		})
		if err != nil {
			return err
		}
	}
	h.sawServer, h.serverRandom, h.version = true, [32]byte(random), version
	return l.applyServerChoice(id)
}

// applyServerChoice checks that the TLS version and the cipher suite id that the server has chosen are
// supported, and looks up the keys.
func (l *tlsLayer) applyServerChoice(id uint16) error {
	h := &l.handshake
	l.outer.conn.tls.Version, l.outer.conn.tls.Cipher = versionName(h.version), suiteName(id)
	if !h.sawClient {
		return l.fail("the beginning of the TLS handshake (ClientHello) was not recorded")
	}
	if h.version != version12 && h.version != version13 {
		return l.fail(fmt.Sprintf("TLS version %s is not supported", versionName(h.version)))
	}
	if h.suite = suiteByID(id, h.version); h.suite == nil {
		return l.fail(fmt.Sprintf("the cipher suite %s is not supported", suiteName(id)))
	}
	l.keysNeededAt = l.outer.inboxes[down].offset
	l.applyKeys()
	return nil
}

// fail ends both directions because of why. It returns nil, because the reason is already in the report.
func (l *tlsLayer) fail(why string) error {
	l.outer.failBoth(down, why)
	return nil
}

// versionName converts a TLS version number such as 0x0303 to a name such as "1.2".
func versionName(v uint16) string {
	if v>>8 == 3 && v&0xff >= 1 {
		return string([]byte{'1', '.', '0' + byte(v&0xff) - 1})
	}
	return fmt.Sprintf("0x%04x", binary.BigEndian.Uint16([]byte{byte(v >> 8), byte(v)}))
}
