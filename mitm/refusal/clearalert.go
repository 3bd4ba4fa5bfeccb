package refusal

import (
	"crypto/tls"
	"errors"
	"net"
)

const (
	recordHeaderLen = 5
	// alertRecord is the content type of an alert.
	alertRecord = 21
	// alertLen is the length of a cleartext alert: level and description.
	alertLen = 2
)

// A Handshake reads the client's side of a TLS handshake and keeps cleartext alerts. In TLS 1.3, OpenSSL sends
// the alert about a certificate in cleartext although keys exist, so that crypto/tls cannot decrypt it.
//
// Source: RFC 8446, section 6.2
type Handshake struct {
	net.Conn

	// record holds the header of the TLS record that is being read, followed by its body if the record
	// is an alert.
	record []byte

	// skip is the number of bytes of another record that are to be skipped.
	skip  int
	alert tls.AlertError
}

// Read reads from the connection during the TLS handshake.
func (h *Handshake) Read(p []byte) (int, error) {
	n, err := h.Conn.Read(p)
	h.scan(p[:n])
	return n, err
}

// scan looks for a TLS alert in received bytes.
func (h *Handshake) scan(p []byte) {
	for len(p) > 0 {
		if h.skip > 0 {
			n := min(h.skip, len(p))
			h.skip -= n
			p = p[n:]
			continue
		}
		h.record = append(h.record, p[0])
		p = p[1:]
		if len(h.record) < recordHeaderLen {
			continue
		}
		size := int(h.record[3])<<8 | int(h.record[4])
		switch {
		case h.record[0] != alertRecord || size != alertLen:
			// Encrypted alerts are longer.
			h.skip = size
		case len(h.record) < recordHeaderLen+alertLen:
			continue
		default:
			h.alert = tls.AlertError(h.record[recordHeaderLen+1])
		}
		h.record = h.record[:0]
	}
}

// Explain returns the unencrypted TLS alert that caused a handshake's error, if there was one, and
// otherwise err.
func (h *Handshake) Explain(err error) error {
	op, ok := errors.AsType[*net.OpError](err)
	if ok && op.Op == "local error" && op.Err.Error() == alertBadRecordMAC.Error() && h.alert != 0 {
		return &net.OpError{Op: "remote error", Err: h.alert}
	}
	return err
}
