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
	"strings"
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

// blockPacket, optionComment and maxComment are the type of an Enhanced Packet Block, the code of a comment in it, and
// the size in bytes at which unwire truncates comments.
const (
	blockPacket   = 0x00000006
	optionComment = 1
	maxComment    = 4096
)

// commented writes an Ethernet frame like packet, with a comment that Wireshark shows with the packet.
//
// The block's body is: interface(4) time(8) captured(4) original(4) data, padded to 4 bytes, code(2) size(2) comment,
// padded to 4 bytes, end of options(4).
func (w *writer) commented(t time.Time, data []byte, comment string) error {
	comment = strings.ToValidUTF8(comment[:min(len(comment), maxComment)], "")
	le, ns := binary.LittleEndian, uint64(t.UnixNano())
	b := le.AppendUint32(nil, 0) // the file has one interface
	b = le.AppendUint32(le.AppendUint32(b, uint32(ns>>32)), uint32(ns))
	b = le.AppendUint32(le.AppendUint32(b, uint32(len(data))), uint32(len(data)))
	b = pad(append(b, data...))
	b = le.AppendUint16(le.AppendUint16(b, optionComment), uint16(len(comment)))
	b = pad(append(b, comment...))
	return w.block(blockPacket, le.AppendUint32(b, 0))
}

// secrets writes TLS secrets, in NSS key log format, as a pcapng block. Readers apply them to the packets after
// it.
//
// The block's body is: kind(4) size(4) log, padded to 4 bytes.
func (w *writer) secrets(log []byte) error {
	le := binary.LittleEndian
	b := le.AppendUint32(le.AppendUint32(nil, secretsTLS), uint32(len(log)))
	return w.block(blockSecrets, pad(append(b, log...)))
}

// block writes a block behind the packets that were written before: type(4) length(4) body length(4). The length of the
// body must be a multiple of 4.
func (w *writer) block(kind uint32, body []byte) error {
	if err := w.flush(); err != nil {
		return err
	}
	le, length := binary.LittleEndian, uint32(len(body)+12)
	b := le.AppendUint32(le.AppendUint32(nil, kind), length)
	if _, err := w.out.Write(le.AppendUint32(append(b, body...), length)); err != nil {
		return fmt.Errorf("pcapng: %w", err)
	}
	return nil
}

// pad appends zeros to b until its length is a multiple of 4.
func pad(b []byte) []byte { return append(b, make([]byte, -len(b)&3)...) }

// flush writes the buffered packets to the file.
func (w *writer) flush() error {
	if err := w.ng.Flush(); err != nil {
		return fmt.Errorf("pcapng: %w", err)
	}
	return nil
}
