// Package packet reads packets from pcap and pcapng files and extracts their TCP segments. It decodes the link
// layer, IPv4 and IPv6, and reassembles fragmented IP packets.
//
//	r, err := packet.NewReader(file, nil)
//	t, segment, err := r.Next() // segment is nil if the packet completes none
//
// Secrets blocks of pcapng are passed to the caller. The package does not know TCP streams: package pcap, its
// user, orders the segments.
package packet

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"time"
)

// maxPacket limits the size of a packet, and of a block of a pcapng file, in bytes.
const maxPacket = 16 << 20

// The first four bytes of a pcap or pcapng file, as a number in the byte order of the machine that wrote it.
const (
	// magicMicros and magicNanos begin pcap files with time stamps in microseconds and in nanoseconds.
	magicMicros = 0xa1b2c3d4
	magicNanos  = 0xa1b23c4d
	// magicNG is the type of a pcapng section header, which is the same in both byte orders.
	magicNG = 0x0a0d0d0a
)

// A frame is a captured packet including its link-layer header.
type frame struct {
	// link is the type of the link-layer header with which the packet begins.
	link linkType
	// t is the time at which the packet was captured.
	t time.Time

	// data is the packet. It is valid until the next packet is read.
	data []byte

	// truncated means that only the beginning of the packet was captured.
	truncated bool
}

// A Segment is a captured TCP segment.
type Segment struct {
	// Src is the IP address and port of the sender.
	Src netip.AddrPort
	// Dst is the IP address and port of the receiver.
	Dst netip.AddrPort
	// Seq is the sequence number of the first byte of Data.
	Seq uint32
	// SYN is the flag of the TCP header that opens a connection.
	SYN bool
	// FIN is the flag of the TCP header that ends a direction.
	FIN bool
	// RST is the flag of the TCP header that aborts the connection.
	RST bool
	// ACK is the flag of the TCP header that marks the acknowledgment number as valid.
	ACK bool
	// Time is when the segment was captured.
	Time time.Time

	// Data is the payload of the segment. It is valid until the next packet is read.
	Data []byte
}

// Skipped counts the packets without a usable TCP segment, by reason.
type Skipped struct {
	// NotTCP is the number of skipped packets of protocols other than TCP.
	NotTCP int64 `json:"not_tcp"`

	// QUIC counts QUIC datagrams: HTTP/3 is not supported.
	QUIC int64 `json:"quic"`

	// Fragments counts fragments of IP packets that were never completed.
	Fragments int64 `json:"fragments"`

	// OtherLink counts packets with an unsupported link type.
	OtherLink int64 `json:"other_link"`

	// Cut counts packets of which only the beginning was captured. The captured part is used nevertheless.
	Cut int64 `json:"cut"`
}

// pcapng is the value of Reader.Format for pcapng files.
const pcapng = "pcapng"

// A Reader reads the packets of a pcap or pcapng file.
//
// Limits: packets of 16 MiB; 1,024 IP packets wait for fragments. Source:
// https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html
type Reader struct {
	// Format is the format of the file, "pcap" or "pcapng".
	Format string

	// r reads the packet file.
	r *bufio.Reader

	// offset is the position of the next byte in the file.
	offset int64

	// order is the byte order of the pcap file or of the current pcapng section.
	order binary.ByteOrder
	// interfaces are the network interfaces of the current pcapng section, by which its packets are
	// interpreted; nil for pcap.
	interfaces []netInterface
	// buf is a reused buffer for one packet or block.
	buf []byte

	// link is the link-layer type of all packets in a pcap file; pcapng specifies it for each interface.
	link linkType
	// perTick is the unit of the fractional part of timestamps in a pcap file: a microsecond or a nanosecond.
	perTick time.Duration

	// onKeys, if set, is called with the key log in each secrets block.
	onKeys func(log []byte)
	// keysOnly makes the reader skip all blocks except those with TLS keys.
	keysOnly bool

	// layers extracts the TCP segment from each packet.
	layers layerDecoder
	// segment is the TCP segment of the packet read last, reused for each packet.
	segment Segment
	// skipped counts the packets read so far that had no usable TCP segment, by reason.
	skipped Skipped
}

// Sniff reports whether a file that begins with head is pcap or pcapng.
func Sniff(head []byte) bool {
	if len(head) < 4 {
		return false
	}
	le, be := binary.LittleEndian.Uint32(head), binary.BigEndian.Uint32(head)
	return be == magicNG || le == magicMicros || be == magicMicros || le == magicNanos || be == magicNanos
}

// NewReader reads the beginning of a file. onKeys, if set, is called with the key log (in NSS format) in each
// secrets block. If r can seek, all secrets blocks are read first, because they may come after the packets.
func NewReader(r io.Reader, onKeys func(log []byte)) (*Reader, error) {
	if s, ok := r.(io.ReadSeeker); ok {
		if err := readKeys(s, onKeys); err != nil {
			return nil, err
		}
	}
	return newReader(r, onKeys)
}

// readKeys reads all secrets blocks of a pcapng file, and seeks back to the beginning.
func readKeys(s io.ReadSeeker, onKeys func(log []byte)) error {
	start, err := s.Seek(0, io.SeekCurrent)
	if err != nil {
		// r is a pipe.
		return nil
	}
	f, err := newReader(s, onKeys)
	if err == nil && f.Format == pcapng {
		f.keysOnly = true
		// Errors in the file will be reported when it is read again.
		_, _ = f.nextFrame()
	}
	if _, err := s.Seek(start, io.SeekStart); err != nil {
		return fmt.Errorf("pcap: the file cannot be read a second time: %w", err)
	}
	return nil
}

// newReader reads the beginning of a file, and returns a reader of its packets.
func newReader(r io.Reader, onKeys func(log []byte)) (*Reader, error) {
	f := &Reader{Format: "pcap", r: bufio.NewReaderSize(r, 1<<20), onKeys: onKeys, order: binary.LittleEndian}
	head, err := f.r.Peek(4)
	if err != nil {
		return nil, fmt.Errorf("pcap: the beginning of the file cannot be read: %w", unexpectedEOF(err))
	}
	if !Sniff(head) {
		return nil, errors.New("pcap: the file is neither pcap nor pcapng")
	}
	if binary.BigEndian.Uint32(head) == magicNG {
		f.Format = pcapng
		return f, nil
	}
	return f, f.readHeader()
}

// Next reads one packet. It returns the packet's time and, if the packet completes a TCP segment, the segment,
// which is valid until the next call. After the last packet it returns io.EOF. After any other error, the rest
// of the file cannot be read.
func (f *Reader) Next() (time.Time, *Segment, error) {
	p, err := f.nextFrame()
	if err != nil {
		return time.Time{}, nil, err
	}
	if p.truncated {
		f.skipped.Cut++
	}

	switch f.segment, err = f.layers.decode(p); {
	case err == nil:
		return p.t, &f.segment, nil
	// The defragmenter counts fragments.
	case errors.Is(err, errFragment):
	case errors.Is(err, errQUIC):
		f.skipped.QUIC++
	case errors.Is(err, errLinkType):
		f.skipped.OtherLink++
	default:
		f.skipped.NotTCP++
	}
	return p.t, nil, nil
}

// Skipped returns the packets skipped so far, including fragments whose packet is still incomplete.
func (f *Reader) Skipped() Skipped {
	s := f.skipped
	s.Fragments = f.layers.defrag.incomplete()
	return s
}

// readHeader reads the file header of a pcap file.
func (f *Reader) readHeader() error {
	h, err := f.read(24)
	if err != nil {
		return fmt.Errorf("pcap: the file's header cannot be read: %w", err)
	}
	f.perTick = time.Microsecond
	magic := binary.LittleEndian.Uint32(h)
	if magic != magicMicros && magic != magicNanos {
		f.order, magic = binary.BigEndian, binary.BigEndian.Uint32(h)
	}
	if magic == magicNanos {
		f.perTick = time.Nanosecond
	}
	// The upper bits describe checksums.
	f.link = linkType(f.order.Uint32(h[20:]) & 0xffff)
	return nil
}

// nextFrame returns the next captured packet, or io.EOF after the last one. After any other error, the position
// of the next packet is unknown, and reading must stop.
func (f *Reader) nextFrame() (frame, error) {
	start := f.offset
	var p frame
	var err error
	if f.Format == pcapng {
		p, err = f.nextNG()
	} else {
		p, err = f.nextClassic()
	}
	if err != nil && err != io.EOF {
		err = fmt.Errorf("pcap: packet at 0x%x: %w", start, err)
	}
	return p, err
}

// nextClassic returns the next packet of a pcap file, i.e. not pcapng.
func (f *Reader) nextClassic() (frame, error) {
	if _, err := f.r.Peek(1); err != nil {
		return frame{}, err
	}
	h, err := f.read(16)
	if err != nil {
		return frame{}, err
	}
	sec, frac := int64(f.order.Uint32(h)), int64(f.order.Uint32(h[4:]))
	kept, whole := f.order.Uint32(h[8:]), f.order.Uint32(h[12:])
	data, err := f.read(int64(kept))
	if err != nil {
		return frame{}, err
	}
	return frame{f.link, time.Unix(sec, frac*int64(f.perTick)), data, kept < whole}, nil
}

// read reads n bytes from the file. The result is valid until the next call.
func (f *Reader) read(n int64) ([]byte, error) {
	if n > maxPacket {
		return nil, fmt.Errorf("the packet has %d bytes, more than the limit of %d", n, maxPacket)
	}
	// What fits into the reader's buffer is not copied out of it.
	if n <= int64(f.r.Size()) {
		p, err := f.r.Peek(int(n))
		if err != nil {
			return nil, unexpectedEOF(err)
		}
		_, _ = f.r.Discard(int(n))
		f.offset += n
		return p, nil
	}
	// The length may be forged, so memory grows only with the bytes that are there.
	f.buf = f.buf[:0]
	for int64(len(f.buf)) < n {
		at := len(f.buf)
		f.buf = append(f.buf, make([]byte, min(n-int64(at), 1<<20))...)
		if _, err := io.ReadFull(f.r, f.buf[at:]); err != nil {
			return nil, unexpectedEOF(err)
		}
	}
	f.offset += n
	return f.buf, nil
}

// skip discards n bytes of the input.
func (f *Reader) skip(n int64) error {
	for n > 0 {
		k, err := f.r.Discard(int(min(n, math.MaxInt32)))
		f.offset += int64(k)
		n -= int64(k)
		if err != nil {
			return unexpectedEOF(err)
		}
	}
	return nil
}

// unexpectedEOF converts io.EOF to io.ErrUnexpectedEOF, for a file that ends inside an element.
func unexpectedEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
