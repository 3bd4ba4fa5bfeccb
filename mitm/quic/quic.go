// Package quic recognizes the datagrams by which clients open QUIC connections (HTTP/3), and answers them so
// that the clients fall back to TCP. It decrypts nothing. Package launch uses it.
//
//	if initial, ok := quic.ParseInitial(datagram); ok {
//		answer := initial.Refusal()
//	}
//
// Source: RFC 8999; RFC 9000, sections 14.1 and 17.2.1; RFC 9369
package quic

import (
	"encoding/binary"
	"slices"
)

// Numbers of QUIC versions in packets.
const (
	Version1 uint32 = 0x00000001
	Version2 uint32 = 0x6b3343cf

	// draftVersions are the first three bytes of the numbers of draft versions.
	draftVersions uint32 = 0xff000000
)

const (
	// LongHeader are the bits of the first byte of a packet with a long header, which opens a connection.
	LongHeader = 0xc0

	// minInitial is the smallest size of a datagram that opens a connection, in bytes.
	minInitial = 1200

	// maxConnectionID is the greatest length of a connection ID in these versions, in bytes.
	maxConnectionID = 20

	// noVersion is one of the version numbers that are reserved to force version negotiation: no client
	// supports it.
	noVersion = 0x1a2a3a4a
)

// An Initial is a QUIC packet with which a client opens a connection.
type Initial struct {
	// Version is the QUIC version in the packet's header.
	Version uint32

	// Destination and Source are the connection IDs of the server and the client. They are slices of the
	// datagram.
	Destination, Source []byte
}

// ParseInitial parses the beginning of a datagram. It returns false if the datagram does not open a QUIC
// connection.
//
// Limits: any datagram of at least 1,200 bytes with the same first six bytes counts as QUIC. Only QUIC 1, QUIC
// 2, the drafts and the reserved versions are recognized.
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

// connectionID parses a connection ID, which follows its length byte, and returns the bytes after it.
func connectionID(p []byte) (id, rest []byte, ok bool) {
	if len(p) == 0 || p[0] > maxConnectionID || len(p) < 1+int(p[0]) {
		return nil, nil, false
	}
	return p[1 : 1+p[0]], p[1+p[0]:], true
}

// Refusal returns the response that makes the client give up immediately: a Version Negotiation packet that
// lists no version that the client supports.
func (p Initial) Refusal() []byte {
	answer := []byte{LongHeader, 0, 0, 0, 0}
	for _, id := range [][]byte{p.Source, p.Destination} {
		answer = slices.Concat(answer, []byte{byte(len(id))}, id)
	}
	return binary.BigEndian.AppendUint32(answer, noVersion)
}
