package contract

import (
	"unwire/captures/pcap"
	"unwire/captures/transfer"
)

// Connection is a TCP connection that was found in packets.
type Connection struct {
	version
	Event string `json:"event"` // "connection"
	pcap.Connection
}

// NewConnection builds the JSON object for a connection in a packet file.
func NewConnection(c pcap.Connection) *Connection {
	return &Connection{Event: "connection", Connection: c}
}

// ImportedPackets is the last event of an import of packets.
type ImportedPackets struct {
	version
	Event string `json:"event"` // "imported"
	pcap.Summary
}

// NewImportedPackets returns the line for an import of packets.
func NewImportedPackets(s pcap.Summary) *ImportedPackets {
	return &ImportedPackets{Event: "imported", Summary: s}
}

// Imported is the last event of an import from a format of whole exchanges.
type Imported struct {
	version
	Event     string `json:"event"` // "imported"
	Exchanges int    `json:"exchanges"`

	// Skipped counts records that are no exchange or could not be read.
	Skipped int `json:"skipped"`

	// Problems lists data that was left out or is doubtful, each with its place in the input; More
	// counts further ones that are not listed.
	Problems []string `json:"problems"`
	More     int      `json:"more_problems"`
}

// NewImported builds the JSON object for the report of an import.
func NewImported(r transfer.Report) *Imported {
	i := &Imported{Event: "imported", Exchanges: r.Exchanges, Skipped: r.Skipped, Problems: r.Problems, More: r.More}
	if i.Problems == nil {
		i.Problems = []string{}
	}
	return i
}
