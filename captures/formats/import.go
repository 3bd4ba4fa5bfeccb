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

// HeadBytes is the number of bytes that Open needs from the beginning of a file to detect its format.
const HeadBytes = 4096

// ErrUnknown is the error for a file in none of the formats.
var ErrUnknown = errors.New("the file has none of the formats that unwire imports")

// An importer detects and imports capture files of one foreign format, such as HAR.
type importer struct {
	// name is the format's name in messages.
	name string

	// sniff reports whether a file that begins with head is in this format.
	sniff func(head []byte) bool

	// read adds the exchanges of the file to the capture. It is nil for packet captures, which Input.Import
	// reads with package pcap.
	read func(context.Context, io.Reader, captures.Target) (transfer.Report, error)
}

// importers returns the formats in the order in which they are tried. JSON Lines is last because it accepts any
// JSON object.
func importers() []importer {
	return []importer{
		{"pcap and pcapng", packet.Sniff, nil},
		{"HAR", har.Sniff, har.Import},
		{"mitmproxy flows", flow.Sniff, flow.Import},
		{"JSON Lines", jsonl.Sniff, jsonl.Import},
	}
}

// ImportNames returns the names of all formats, joined by commas.
func ImportNames() string {
	var names []string
	for _, i := range importers() {
		names = append(names, i.name)
	}
	return strings.Join(names, ", ")
}

// An Input is an open file, possibly compressed, whose format was detected.
type Input struct {
	// The embedded importer reads the detected format.
	importer

	// r reads the decompressed contents from their beginning.
	r io.Reader
}

// Open detects the format of the file in from head, its first HeadBytes bytes (fewer if the file is shorter).
// in must be positioned at its beginning. If in can seek, formats that need two passes seek instead of
// buffering the file in memory.
//
// Limits: a compressed file may contain at most 64 GiB. Errors: ErrUnknown, or that of a damaged compressed
// file.
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

// ImportOptions are the options for importing a file.
type ImportOptions struct {
	// Store is the capture to which the imported exchanges are added.
	Store captures.Target

	// Keys are the TLS session keys that decrypt packets; nil if there are none.
	Keys *pcap.KeyLog

	// Connection, if set, is called for each TCP connection found in a packet capture.
	Connection func(pcap.Connection)
}

// An ImportResult describes what an import read. Summary is set for packets, Report for all other formats.
type ImportResult struct {
	// Summary describes an import of captured packets; nil for any other format.
	Summary *pcap.Summary
	// Report describes an import of any format other than packets; nil for packets.
	Report *transfer.Report
}

// Exchanges returns the number of exchanges that were recorded.
func (i ImportResult) Exchanges() int64 {
	if i.Summary != nil {
		return i.Summary.Exchanges
	}
	return int64(i.Report.Exchanges)
}

// Import adds the exchanges of the file to a capture. The exchanges that were read before an error stay in it.
//
// Errors: those of the format's package.
func (i *Input) Import(ctx context.Context, o ImportOptions) (ImportResult, error) {
	// Packets need TLS keys and have a report of their own.
	if i.read == nil {
		sum, err := pcap.Import(ctx, i.r, pcap.Options{Store: o.Store, Keys: o.Keys, Connection: o.Connection})
		return ImportResult{Summary: &sum}, err
	}
	report, err := i.read(ctx, i.r, o.Store)
	return ImportResult{Report: &report}, err
}
