package formats

import (
	"context"
	"errors"
	"io"
	"strings"

	"unwire/captures"
	"unwire/captures/flow"
	"unwire/captures/har"
	"unwire/captures/jsonl"
	"unwire/captures/pcap"
	"unwire/captures/pcap/packet"
	"unwire/captures/transfer"
)

// HeadBytes is how much of the beginning of a file Open wants to see.
const HeadBytes = 4096

// ErrUnknown is the error for a file in none of the formats.
var ErrUnknown = errors.New("no format that import reads")

// An importer reads one format.
type importer struct {
	name string

	// sniff reports whether a file that begins with head is of the format.
	sniff func(head []byte) bool

	// read reads exchanges; nil for packets.
	read func(context.Context, io.Reader, captures.Target) (transfer.Report, error)
}

// importers are the formats, asked in this order: any object is taken for JSON Lines.
func importers() []importer {
	return []importer{
		{"pcap and pcapng", packet.Sniff, nil},
		{"HAR", har.Sniff, har.Import},
		{"mitmproxy flows", flow.Sniff, flow.Import},
		{"JSON Lines", jsonl.Sniff, jsonl.Import},
	}
}

// ImportNames are the names of the formats, in words.
func ImportNames() string {
	var names []string
	for _, i := range importers() {
		names = append(names, i.name)
	}
	return strings.Join(names, ", ")
}

// An Input is a file in one of the formats.
type Input struct {
	importer
	r io.Reader
}

// Open finds out the format of a file that begins with head, up to HeadBytes. in is
// read from its beginning; one that can seek is not kept in memory where it is read
// twice.
//
// Limits: 64 GiB of a compressed file.
// Errors: ErrUnknown; of a damaged compressed file.
func Open(in io.Reader, head []byte) (*Input, error) {
	in, head, err := inflate(in, head)
	if err != nil {
		return nil, err
	}
	for _, i := range importers() {
		if i.sniff(head) {
			return &Input{i, in}, nil
		}
	}
	return nil, ErrUnknown
}

// ImportOptions say where an import goes to.
type ImportOptions struct {
	Store captures.Target

	// Keys are the TLS keys for packets.
	Keys *pcap.KeyLog

	// Connection, if set, is called with each connection that was found in packets.
	Connection func(pcap.Connection)
}

// Imported is what an import made of its input: Summary of packets, Report of other
// formats.
type Imported struct {
	Summary *pcap.Summary
	Report  *transfer.Report
}

// Exchanges is how many were recorded.
func (i Imported) Exchanges() int64 {
	if i.Summary != nil {
		return i.Summary.Exchanges
	}
	return int64(i.Report.Exchanges)
}

// Import reads the file into a capture. What was read before an error counts.
//
// Errors: those of the format's package.
func (i *Input) Import(ctx context.Context, o ImportOptions) (Imported, error) {
	if i.read == nil {
		sum, err := pcap.Import(ctx, i.r, pcap.Options{Store: o.Store, Keys: o.Keys, Connection: o.Connection})
		return Imported{Summary: &sum}, err
	}
	report, err := i.read(ctx, i.r, o.Store)
	return Imported{Report: &report}, err
}
