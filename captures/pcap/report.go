package pcap

import (
	"time"

	"unwire/captures"
	"unwire/captures/pcap/packet"
)

// A Connection is what became of one TCP connection.
//
// Shape: offsets are in the bytes of a direction from the connection's first
// byte on; those of Undecoded are in the decrypted bytes where the reason is
// one of HTTP.
type Connection struct {
	Number  int64     `json:"connection"`
	Client  string    `json:"client"`
	Server  string    `json:"server"`
	Started time.Time `json:"started"`

	// TLS is the version.
	TLS        string `json:"tls,omitempty"`
	Cipher     string `json:"cipher,omitempty"`
	ServerName string `json:"server_name,omitempty"`

	// Protocol is "http/1.1", "h2", "tcp" or "tls" (neither is HTTP), and empty if the
	// connection had no bytes or was not decrypted.
	Protocol  string `json:"protocol,omitempty"`
	Exchanges int    `json:"exchanges"`
	Packets   int64  `json:"packets"`

	// BytesUp and BytesDown count the bytes of TCP.
	BytesUp   int64       `json:"bytes_up"`
	BytesDown int64       `json:"bytes_down"`
	Gaps      []Gap       `json:"gaps,omitempty"`
	Undecoded []Undecoded `json:"undecoded,omitempty"`

	// NoKey is set if the key log has no keys of this TLS session.
	NoKey bool `json:"no_key,omitempty"`
}

// A Gap is a run of bytes that was not captured.
type Gap struct {
	Dir    string `json:"dir"`
	Offset int64  `json:"offset"`
	Bytes  int64  `json:"bytes"`
}

// An Undecoded says from where on a direction could not be decoded, and why.
type Undecoded struct {
	Dir    string `json:"dir"`
	Offset int64  `json:"offset"`
	Reason string `json:"reason"`
}

// A Summary counts what an import read.
type Summary struct {
	Packets     int64 `json:"packets"`
	Connections int64 `json:"connections"`
	Exchanges   int64 `json:"exchanges"`

	// Undecoded counts connections of which something could not be decoded.
	Undecoded int64 `json:"undecoded"`

	// Keys counts the TLS sessions in the key logs.
	Keys int `json:"keys"`
	packet.Skipped
}

const maxGaps = 32 // of a connection

func (r *Connection) addGap(dir captures.Direction, g gap) {
	if len(r.Gaps) < maxGaps {
		r.Gaps = append(r.Gaps, Gap{dir.String(), g.offset, g.length})
	}
}
