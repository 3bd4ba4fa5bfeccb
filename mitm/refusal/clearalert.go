package refusal

import (
	"crypto/tls"
	"errors"
	"net"
)

const (
	recordHeaderLen = 5
	alertRecord     = 21 // content type of a record
	alertLen        = 2  // level and description
)

// A Handshake reads a client's side of a TLS handshake, and keeps an alert in clear: in TLS
// 1.3, OpenSSL sends one when it refuses a certificate, although there are keys by then, so
// that the server cannot read it as an alert.
//
// Source: RFC 8446, section 6.2
type Handshake struct {
	net.Conn

	// record is the header of the record that is read, and the body of an alert.
	record []byte

	// left is how many bytes of another record are still to come.
	left  int
	alert tls.AlertError
}

// Read reads from the connection.
func (h *Handshake) Read(p []byte) (int, error) {
	n, err := h.Conn.Read(p)
	h.follow(p[:n])
	return n, err
}

// follow looks for an alert in bytes that were read.
func (h *Handshake) follow(p []byte) {
	for len(p) > 0 {
		if h.left > 0 {
			n := min(h.left, len(p))
			h.left -= n
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
			// An encrypted alert is longer.
			h.left = size
		case len(h.record) < recordHeaderLen+alertLen:
			continue
		default:
			h.alert = tls.AlertError(h.record[recordHeaderLen+1])
		}
		h.record = h.record[:0]
	}
}

// Explain returns the alert that a handshake failed with, if the client sent it in clear and
// the server could not read it, or else err.
func (h *Handshake) Explain(err error) error {
	op, ok := errors.AsType[*net.OpError](err)
	if ok && op.Op == "local error" && op.Err.Error() == alertBadRecordMAC.Error() && h.alert != 0 {
		return &net.OpError{Op: "remote error", Err: h.alert}
	}
	return err
}
