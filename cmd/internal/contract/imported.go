package contract

import (
	"unwire/captures/pcap"
	"unwire/captures/transfer"
)

// Connection is the event of a TCP connection that an import found in a packet file.
type Connection struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Event is "connection".
	Event string `json:"event"`
	// Connection describes the TCP connection; its fields become members of the JSON object.
	pcap.Connection
}

// NewConnection builds the JSON object for a connection in a packet file.
func NewConnection(c pcap.Connection) *Connection {
	return &Connection{Event: "connection", Connection: c}
}

// ImportedPackets is the last event of an import of a packet file.
type ImportedPackets struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Event is "imported".
	Event string `json:"event"`
	// Summary counts what the import found in the packet file; its fields become members of the JSON object.
	pcap.Summary
}

// NewImportedPackets builds the JSON object for the summary of an import of packets.
func NewImportedPackets(s pcap.Summary) *ImportedPackets {
	return &ImportedPackets{Event: "imported", Summary: s}
}

// Imported is the last event of an import from a format that contains whole exchanges, such as HAR.
type Imported struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Event is "imported".
	Event string `json:"event"`

	// Exchanges is the number of imported exchanges.
	Exchanges int `json:"exchanges"`

	// Skipped counts records that are no exchange or could not be read.
	Skipped int `json:"skipped"`

	// Problems describes data that was left out or may be wrong, each with its place in the input.
	Problems []string `json:"problems"`

	// More is the number of further problems, which are not in the list.
	More int `json:"more_problems"`
}

// NewImported builds the JSON object for the report of an import.
func NewImported(r transfer.Report) *Imported {
	i := &Imported{Event: "imported", Exchanges: r.Exchanges, Skipped: r.Skipped, Problems: r.Problems, More: r.More}
	if i.Problems == nil {
		i.Problems = []string{}
	}
	return i
}
