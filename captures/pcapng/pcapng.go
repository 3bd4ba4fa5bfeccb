// Package pcapng writes packet captures (pcapng files) together with the TLS secrets that decrypt them. Package
// formats and the command capture use it; package pcap reads packets.
//
//	result, err := pcapng.Export(ctx, w, src, pcapng.Options{Name: "a.uwc"})
//
// Export synthesizes packets from recorded exchanges: it plans the connections, and writes each exchange as
// HTTP/1 or HTTP/2 onto a link, which produces TCP packets, with real TLS where needed. A Recording is a file of
// real packets that grows while a command runs.
package pcapng

import (
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

const (
	// blockSecrets is the type of a pcapng block with decryption secrets, and secretsTLS the kind of secrets in
	// it.
	blockSecrets = 0x0000000a
	secretsTLS   = 0x544c534b // "TLSK": an NSS key log
)

// A writer writes a pcapng file of one section with one Ethernet interface.
//
// Source: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html
type writer struct {
	// out is the file to which ng writes, used directly for blocks that ng cannot write.
	out io.Writer
	// ng encodes the blocks of the pcapng file.
	ng *pcapgo.NgWriter
}

// newWriter writes the beginning of a pcapng file. Wireshark shows the comment among the file's properties.
func newWriter(w io.Writer, comment string) (*writer, error) {
	ng, err := pcapgo.NewNgWriterInterface(w,
		pcapgo.NgInterface{LinkType: layers.LinkTypeEthernet, TimestampResolution: 9},
		pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{Application: "unwire", Comment: comment}})
	if err != nil {
		return nil, fmt.Errorf("pcapng: %w", err)
	}
	return &writer{w, ng}, nil
}

// packet writes an Ethernet frame that was captured at t. length is its original length in bytes; data may be
// only its beginning.
func (w *writer) packet(t time.Time, data []byte, length int) error {
	err := w.ng.WritePacket(gopacket.CaptureInfo{Timestamp: t, CaptureLength: len(data), Length: max(length, len(data))}, data)
	if err != nil {
		return fmt.Errorf("pcapng: %w", err)
	}
	return nil
}

// secrets writes TLS secrets, in NSS key log format, as a pcapng block. Readers apply them to the packets after
// it.
//
// The block is: type(4) length(4) kind(4) size(4) log, padded to 4 bytes, length(4).
func (w *writer) secrets(log []byte) error {
	if err := w.flush(); err != nil {
		return err
	}
	padded := (len(log) + 3) &^ 3
	le := binary.LittleEndian
	b := le.AppendUint32(nil, blockSecrets)
	b = le.AppendUint32(b, uint32(20+padded))
	b = le.AppendUint32(b, secretsTLS)
	b = le.AppendUint32(b, uint32(len(log)))
	b = append(b, log...)
	b = append(b, make([]byte, padded-len(log))...)
	b = le.AppendUint32(b, uint32(20+padded))
	if _, err := w.out.Write(b); err != nil {
		return fmt.Errorf("pcapng: %w", err)
	}
	return nil
}

// flush writes the buffered packets to the file.
func (w *writer) flush() error {
	if err := w.ng.Flush(); err != nil {
		return fmt.Errorf("pcapng: %w", err)
	}
	return nil
}
