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
	maxSessions = 1 << 20 // of a key log
	maxKeyLine  = 4096    // bytes
)

// A sessionSecrets is what a key log says of one TLS session.
type sessionSecrets struct {
	master                               []byte // TLS 1.2
	early                                []byte
	clientHandshake, serverHandshake     []byte
	clientApplication, serverApplication []byte
}

// A KeyLog holds the secrets of TLS sessions by their client random, as
// SSLKEYLOGFILE has them. The zero value has none.
//
// Source: https://www.ietf.org/archive/id/draft-ietf-tls-keylogfile-05.html
type KeyLog struct {
	sessions map[[32]byte]*sessionSecrets
}

// Read adds the lines of r. Lines that are no secrets are passed over, as in
// every reader of this format.
//
// Limits: a line of 4 KiB, a million sessions. Errors: of reading, and the limits'.
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

// addBlock adds what a secrets block holds, as far as it can be read.
func (k *KeyLog) addBlock(log []byte) { _ = k.Read(bytes.NewReader(log)) }

// addLine adds a line, if it is a secret.
func (k *KeyLog) addLine(line string) error {
	label, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	random, secret, _ := strings.Cut(rest, " ")
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
	if len(k.sessions) == maxSessions && k.sessions[id] == nil {
		return fmt.Errorf("more than %d sessions", maxSessions)
	}
	if k.sessions == nil {
		k.sessions = map[[32]byte]*sessionSecrets{}
	}
	k.sessions[id] = s
	return nil
}
