package pcap

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
)

const (
	// maxSessions limits the number of TLS sessions in a key log.
	maxSessions = 1 << 20
	// maxKeyLine limits a line of a key log, in bytes.
	maxKeyLine = 4096
)

// A sessionSecrets holds the key log's secrets for one TLS session.
type sessionSecrets struct {
	// master is the master secret of a TLS 1.2 session; nil if not in the key log.
	master []byte
	// early is the client's traffic secret for TLS 1.3 early data (0-RTT); nil if not in the key log.
	early []byte
	// clientHandshake is the client's TLS 1.3 traffic secret for the handshake; nil if not in the key log.
	clientHandshake []byte
	// serverHandshake is the server's TLS 1.3 traffic secret for the handshake; nil if not in the key log.
	serverHandshake []byte
	// clientApplication is the client's first TLS 1.3 traffic secret for application data; nil if not in the
	// key log.
	clientApplication []byte
	// serverApplication is the server's first TLS 1.3 traffic secret for application data; nil if not in the
	// key log.
	serverApplication []byte
}

// A KeyLog contains the secrets of TLS sessions by their client random, in the format of SSLKEYLOGFILE. The zero
// value is empty.
//
// Source: https://www.ietf.org/archive/id/draft-ietf-tls-keylogfile-05.html
type KeyLog struct {
	// sessions maps the client random of each TLS session to its secrets; nil if there are none.
	sessions map[[32]byte]*sessionSecrets
}

// Read adds the secrets of a key log. It ignores lines that are not secrets, as all readers of this format do.
//
// Limits: lines of 4 KiB, a million sessions. Errors: those of r, and exceeded limits.
func (k *KeyLog) Read(r io.Reader) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, maxKeyLine), maxKeyLine)
	for line := 1; sc.Scan(); line++ {
		if err := k.addLine(sc.Text()); err != nil {
			return fmt.Errorf("key log: line %d: %w", line, err)
		}
	}
	if err := sc.Err(); err != nil {
		return fmt.Errorf("key log: %w", err)
	}
	return nil
}

// addBlock adds the valid secrets in a decryption secrets block of a pcapng file.
func (k *KeyLog) addBlock(log []byte) { _ = k.Read(bytes.NewReader(log)) }

// addLine adds the secret in one line of a key log; lines that contain no secret are ignored.
func (k *KeyLog) addLine(line string) error {
	label, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	random, secret, _ := strings.Cut(rest, " ")

	// Lines that are not secrets are ignored, as other readers do.
	var id [32]byte
	if len(random) != 2*len(id) || len(secret) == 0 || len(secret) > 128 {
		return nil
	}
	if _, err := hex.Decode(id[:], []byte(random)); err != nil {
		return nil
	}
	value, err := hex.DecodeString(secret)
	if err != nil {
		return nil
	}

	// A session has several secrets, on lines of their own.
	s := k.sessions[id]
	if s == nil {
		s = new(sessionSecrets)
	}
	switch label {
	case "CLIENT_RANDOM":
		s.master = value
	case "CLIENT_EARLY_TRAFFIC_SECRET":
		s.early = value
	case "CLIENT_HANDSHAKE_TRAFFIC_SECRET":
		s.clientHandshake = value
	case "SERVER_HANDSHAKE_TRAFFIC_SECRET":
		s.serverHandshake = value
	case "CLIENT_TRAFFIC_SECRET_0":
		s.clientApplication = value
	case "SERVER_TRAFFIC_SECRET_0":
		s.serverApplication = value
	default:
		return nil
	}

	// The limit bounds the memory that a log can take.
	if len(k.sessions) == maxSessions && k.sessions[id] == nil {
		return fmt.Errorf("the key log has more than %d sessions", maxSessions)
	}
	if k.sessions == nil {
		k.sessions = map[[32]byte]*sessionSecrets{}
	}
	k.sessions[id] = s
	return nil
}
