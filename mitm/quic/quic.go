// Package quic recognises the datagrams by which clients open QUIC connections (HTTP/3),
// and answers them so that the clients fall back to TCP. It decrypts nothing.
//
// Source: RFC 8999; RFC 9000, sections 14.1 and 17.2.1; RFC 9369
package quic

import (
	"encoding/binary"
	"slices"
)

// Versions of QUIC.
const (
	Version1 uint32 = 0x00000001
	Version2 uint32 = 0x6b3343cf

	// draftVersions are the first three bytes of the drafts' versions.
	draftVersions uint32 = 0xff000000
)

const (
	// LongHeader are the bits of the first byte of a packet with a long header, as all
	// are that open a connection.
	LongHeader = 0xc0

	// minInitial is how long a datagram is at least that opens a connection.
	minInitial = 1200

	maxConnectionID = 20 // in these versions

	// noVersion is one of those that are reserved for testing that unknown versions are
	// ignored: no client speaks it.
	noVersion = 0x1a2a3a4a
)

// An Initial is the packet by which a client opens a connection.
type Initial struct {
	Version uint32

	// Destination and Source are the connection IDs. They point into the datagram.
	Destination, Source []byte
}

// ParseInitial reports whether a datagram opens a QUIC connection.
//
// Limits: other datagrams with the same first six bytes, of 1,200 bytes or more, are
// taken for QUIC. A version that is none of QUIC 1, QUIC 2, the drafts, and those reserved
// for testing, is not recognised.
func ParseInitial(datagram []byte) (Initial, bool) {
	if len(datagram) < minInitial || datagram[0]&LongHeader != LongHeader {
		return Initial{}, false
	}
	p := Initial{Version: binary.BigEndian.Uint32(datagram[1:])}
	known := p.Version == Version1 || p.Version == Version2 ||
		p.Version&^uint32(0xff) == draftVersions || p.Version&0x0f0f0f0f == 0x0a0a0a0a
	var ok, ok2 bool
	rest := datagram[5:]
	p.Destination, rest, ok = connectionID(rest)
	p.Source, _, ok2 = connectionID(rest)
	return p, known && ok && ok2
}

func connectionID(p []byte) (id, rest []byte, ok bool) {
	if len(p) == 0 || p[0] > maxConnectionID || len(p) < 1+int(p[0]) {
		return nil, nil, false
	}
	return p[1 : 1+p[0]], p[1+p[0]:], true
}

// Refusal is the answer to a packet that has its client give up at once: the server speaks
// no version that the client could.
func (p Initial) Refusal() []byte {
	answer := []byte{LongHeader, 0, 0, 0, 0}
	for _, id := range [][]byte{p.Source, p.Destination} {
		answer = slices.Concat(answer, []byte{byte(len(id))}, id)
	}
	return binary.BigEndian.AppendUint32(answer, noVersion)
}
