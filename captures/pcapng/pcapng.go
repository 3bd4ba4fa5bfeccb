// Package pcapng writes packet captures with the secrets that open them: of
// packets that were recorded, and of exchanges of which there are no packets.
//
// An export plans which connections there were, and writes each exchange onto a TCP
// link with made packets, as HTTP/1 or HTTP/2, in TLS whose secrets are written too.
// A Recording is a file of real packets that grows while a command runs. Reading
// packets is package pcap's. Package formats and the command capture call this one.
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
	blockSecrets = 0x0000000a
	secretsTLS   = 0x544c534b // "TLSK": an NSS key log
)

// A writer writes a pcapng file of one section with one Ethernet interface.
//
// Source: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html
type writer struct {
	out io.Writer
	ng  *pcapgo.NgWriter
}

// newWriter begins a file. The comment is the section's: Wireshark shows it
// among the file's properties.
func newWriter(w io.Writer, comment string) (*writer, error) {
	ng, err := pcapgo.NewNgWriterInterface(w,
		pcapgo.NgInterface{LinkType: layers.LinkTypeEthernet, TimestampResolution: 9},
		pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{Application: "unwire", Comment: comment}})
	if err != nil {
		return nil, fmt.Errorf("pcapng: %w", err)
	}
	return &writer{w, ng}, nil
}

// packet writes an Ethernet frame that came at t; length is that of the whole
// frame, of which data may be the beginning.
func (w *writer) packet(t time.Time, data []byte, length int) error {
	err := w.ng.WritePacket(gopacket.CaptureInfo{Timestamp: t, CaptureLength: len(data), Length: max(length, len(data))}, data)
	if err != nil {
		return fmt.Errorf("pcapng: %w", err)
	}
	return nil
}

// secrets writes an NSS key log. Readers use it for the packets behind it.
//
// Layout: type(4) length(4) kind(4) size(4) log, padded to 4, length(4).
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

// flush writes what is held back.
func (w *writer) flush() error {
	if err := w.ng.Flush(); err != nil {
		return fmt.Errorf("pcapng: %w", err)
	}
	return nil
}
