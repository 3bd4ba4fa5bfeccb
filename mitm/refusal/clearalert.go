package refusal

import (
	"crypto/tls"
	"errors"
	"net"
)

const (
	// recordHeaderLen is the length of a TLS record header in bytes.
	recordHeaderLen = 5
	// alertRecord is the content type of TLS records that contain an alert.
	alertRecord = 21
	// alertLen is the length of a cleartext alert in bytes: level and description.
	alertLen = 2
)

// A Handshake is a client's connection during the TLS handshake. It stores cleartext alerts, because in TLS
// 1.3, OpenSSL sends the alert about a certificate in cleartext although keys exist, so that crypto/tls cannot
// decrypt it.
//
// Source: RFC 8446, section 6.2
type Handshake struct {
	// Conn is the client's connection.
	net.Conn

	// record holds the header of the TLS record that is being read, followed by its body if the record
	// is an alert.
	record []byte

	// skip is the number of bytes that are still to be skipped of a TLS record that is not an alert.
	skip int
	// alert is the last alert that the client sent in cleartext; 0 if there was none.
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

// Explain returns the cleartext TLS alert that caused err, the error of the handshake, if there was one;
// otherwise err.
func (h *Handshake) Explain(err error) error {
	op, ok := errors.AsType[*net.OpError](err)
	if ok && op.Op == "local error" && op.Err.Error() == alertBadRecordMAC.Error() && h.alert != 0 {
		return &net.OpError{Op: "remote error", Err: h.alert}
	}
	return err
}
