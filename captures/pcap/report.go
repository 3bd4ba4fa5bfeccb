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
	// Client and Server are the addresses of the two ends, host:port.
	Client string `json:"client"`
	Server string `json:"server"`
	// Started is the time of the connection's first packet.
	Started time.Time `json:"started"`

	// TLS is the TLS version, such as "1.3"; "" for cleartext.
	TLS string `json:"tls,omitempty"`
	// Cipher is the name of the cipher suite, and ServerName the host name of the TLS handshake
	// (SNI).
	Cipher     string `json:"cipher,omitempty"`
	ServerName string `json:"server_name,omitempty"`

	// Protocol is "http/1.1", "h2", "tcp" or "tls" (the last two are not HTTP). It is empty if the connection
	// had no bytes or was not decrypted.
	Protocol string `json:"protocol,omitempty"`
	// Exchanges counts the exchanges of the connection, and Packets its packets.
	Exchanges int   `json:"exchanges"`
	Packets   int64 `json:"packets"`

	// BytesUp and BytesDown count the bytes of the TCP streams.
	BytesUp   int64 `json:"bytes_up"`
	BytesDown int64 `json:"bytes_down"`
	// Gaps are the parts of the TCP streams that were not captured, and Undecoded the points from which a
	// direction could not be decoded.
	Gaps      []Gap       `json:"gaps,omitempty"`
	Undecoded []Undecoded `json:"undecoded,omitempty"`

	// NoKey means that the key log lacks the secrets of the TLS session.
	NoKey bool `json:"no_key,omitempty"`
}

// A Gap is a run of bytes that the packet file does not contain.
type Gap struct {
	// Dir is "up" or "down", Offset the position of the first missing byte, and Bytes their number.
	Dir    string `json:"dir"`
	Offset int64  `json:"offset"`
	Bytes  int64  `json:"bytes"`
}

// An Undecoded describes from which byte on a direction of a connection could not be decoded, and why.
type Undecoded struct {
	// Dir is "up" or "down", Offset the position of the first byte that was not decoded, and Reason
	// the cause.
	Dir    string `json:"dir"`
	Offset int64  `json:"offset"`
	Reason string `json:"reason"`
}

// A Summary holds the counts of an import of packets.
type Summary struct {
	// Packets, Connections and Exchanges are the numbers of elements that were read.
	Packets     int64 `json:"packets"`
	Connections int64 `json:"connections"`
	Exchanges   int64 `json:"exchanges"`

	// Undecoded counts the connections that could not be decoded completely.
	Undecoded int64 `json:"undecoded"`

	// Keys is the number of TLS sessions in the key log.
	Keys int `json:"keys"`
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
