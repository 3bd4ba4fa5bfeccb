package pcap

import (
	"time"

	"unwire/captures"
	"unwire/captures/pcap/packet"
)

// A Connection is the report about one TCP connection.
//
// Shape: offsets count the bytes of a direction from the beginning of the connection. Those of Undecoded count
// decrypted bytes if the reason concerns HTTP.
type Connection struct {
	// Number counts the connections of the file, from 1.
	Number int64 `json:"connection"`
	// Client is the network address of the client, host:port.
	Client string `json:"client"`
	// Server is the network address of the server, host:port.
	Server string `json:"server"`
	// Started is the time of the connection's first packet.
	Started time.Time `json:"started"`

	// TLS is the TLS version, such as "1.3"; "" for cleartext.
	TLS string `json:"tls,omitempty"`
	// Cipher is the name of the TLS cipher suite; "" for cleartext or if unknown.
	Cipher string `json:"cipher,omitempty"`
	// ServerName is the host name in the TLS handshake (SNI); "" if there is none.
	ServerName string `json:"server_name,omitempty"`

	// Protocol is "http/1.1", "h2", "tcp" or "tls" (the last two are not HTTP). It is empty if the connection
	// had no bytes or was not decrypted.
	Protocol string `json:"protocol,omitempty"`
	// Exchanges is the number of exchanges found in the connection.
	Exchanges int `json:"exchanges"`
	// Packets is the number of captured packets of the connection.
	Packets int64 `json:"packets"`

	// BytesUp is the number of bytes in the TCP stream from client to server.
	BytesUp int64 `json:"bytes_up"`
	// BytesDown is the number of bytes in the TCP stream from server to client.
	BytesDown int64 `json:"bytes_down"`
	// Gaps are the parts of the TCP streams that were not captured; nil if there are none.
	Gaps []Gap `json:"gaps,omitempty"`
	// Undecoded are the points from which a direction could not be decoded, with the reasons; nil if there
	// are none.
	Undecoded []Undecoded `json:"undecoded,omitempty"`

	// NoKey means that the key log lacks the secrets of the TLS session.
	NoKey bool `json:"no_key,omitempty"`
}

// A Gap is a run of bytes that the packet file does not contain.
type Gap struct {
	// Dir is the direction of the missing bytes: "up" from client to server, or "down".
	Dir string `json:"dir"`
	// Offset is the position of the first missing byte in the TCP stream of the direction.
	Offset int64 `json:"offset"`
	// Bytes is the number of missing bytes.
	Bytes int64 `json:"bytes"`
}

// An Undecoded describes from which byte on a direction of a connection could not be decoded, and why.
type Undecoded struct {
	// Dir is the direction that could not be decoded: "up" from client to server, or "down".
	Dir string `json:"dir"`
	// Offset is the position, in the byte stream of the direction, of the first byte that was not decoded.
	Offset int64 `json:"offset"`
	// Reason describes why decoding ended.
	Reason string `json:"reason"`
}

// A Summary holds the counts of an import of packets.
type Summary struct {
	// Packets is the number of packets that were read.
	Packets int64 `json:"packets"`
	// Connections is the number of TCP connections that were found.
	Connections int64 `json:"connections"`
	// Exchanges is the number of exchanges that were recorded.
	Exchanges int64 `json:"exchanges"`

	// Undecoded counts the connections that could not be decoded completely.
	Undecoded int64 `json:"undecoded"`

	// Keys is the number of TLS sessions in the key log.
	Keys int `json:"keys"`
	// The embedded Skipped counts the packets without a usable TCP segment, by reason.
	packet.Skipped
}

// maxGaps limits the number of entries in Connection.Gaps.
const maxGaps = 32 // of a connection

// addGap adds missing bytes to the report, unless it has too many entries already.
func (r *Connection) addGap(dir captures.Direction, g gap) {
	if len(r.Gaps) < maxGaps {
		r.Gaps = append(r.Gaps, Gap{dir.String(), g.offset, g.length})
	}
}
