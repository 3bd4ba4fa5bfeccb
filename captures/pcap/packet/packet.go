// Package packet reads the packets of pcap and pcapng files and takes the TCP
// segments out of them: it decodes the link layer, IPv4 and IPv6, and puts
// fragments of IP packets together.
//
// The link layer says what a packet holds; fragments wait until their IP packet is
// complete. A block of secrets in pcapng is handed to the caller. The package knows
// no streams: package pcap puts segments into order.
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

// maxPacket limits a packet, and a block of a pcapng file that is read, in bytes.
const maxPacket = 16 << 20

// The first four bytes of a file, as its writer's machine orders them.
const (
	magicMicros = 0xa1b2c3d4
	magicNanos  = 0xa1b23c4d
	magicNG     = 0x0a0d0d0a // the same in both orders
)

// A frame is a captured frame of some link layer.
type frame struct {
	link linkType
	t    time.Time

	// data is valid until the next frame is read.
	data []byte

	// truncated is set if the capture kept only the frame's beginning.
	truncated bool
}

// A Segment is a TCP segment.
type Segment struct {
	Src, Dst           netip.AddrPort
	Seq                uint32
	SYN, FIN, RST, ACK bool
	Time               time.Time

	// Data is valid until the next packet is read.
	Data []byte
}

// Skipped counts the packets that had no TCP segment to return, by reason.
type Skipped struct {
	NotTCP int64 `json:"not_tcp"`

	// QUIC counts datagrams of QUIC: HTTP/3 is not read.
	QUIC int64 `json:"quic"`

	// Fragments counts fragments of IP packets that were never complete.
	Fragments int64 `json:"fragments"`

	// OtherLink counts packets of a link type that is not read.
	OtherLink int64 `json:"other_link"`

	// Cut counts packets of which the capture has only the beginning. They are
	// read all the same.
	Cut int64 `json:"cut"`
}

// pcapng is the Format of the newer of the two.
const pcapng = "pcapng"

// A Reader reads the packets of a pcap or pcapng file one after the other.
//
// Limits: a packet of 16 MiB; 1,024 IP packets wait for fragments.
// Source: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html
type Reader struct {
	// Format is the file's format, "pcap" or "pcapng".
	Format string

	r *bufio.Reader

	// offset is that of the byte that is read next.
	offset     int64
	order      binary.ByteOrder
	interfaces []netInterface
	buf        []byte

	// link and perTick are those of a pcap file.
	link    linkType
	perTick time.Duration

	// onKeys, if set, is called with the NSS key log of each secrets block.
	onKeys   func(log []byte)
	keysOnly bool

	layers  layerDecoder
	segment Segment
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

// NewReader reads the beginning of a file. onKeys, if set, is called with the NSS
// key log of each secrets block. If r can seek, all secrets blocks are read first,
// since they may follow the packets that they decrypt.
func NewReader(r io.Reader, onKeys func(log []byte)) (*Reader, error) {
	if s, ok := r.(io.ReadSeeker); ok {
		if err := readKeys(s, onKeys); err != nil {
			return nil, err
		}
	}
	return newReader(r, onKeys)
}

// readKeys reads the secrets blocks of a file, and goes back to where it began.
func readKeys(s io.ReadSeeker, onKeys func(log []byte)) error {
	start, err := s.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil // a pipe
	}
	f, err := newReader(s, onKeys)
	if err == nil && f.Format == pcapng {
		f.keysOnly = true
		// What is wrong with the file is reported when it is read.
		_, _ = f.nextFrame()
	}
	if _, err := s.Seek(start, io.SeekStart); err != nil {
		return fmt.Errorf("pcap: going back to the beginning: %w", err)
	}
	return nil
}

func newReader(r io.Reader, onKeys func(log []byte)) (*Reader, error) {
	f := &Reader{Format: "pcap", r: bufio.NewReaderSize(r, 1<<20), onKeys: onKeys, order: binary.LittleEndian}
	head, err := f.r.Peek(4)
	if err != nil {
		return nil, fmt.Errorf("pcap: the file's beginning: %w", noEOF(err))
	}
	if !Sniff(head) {
		return nil, errors.New("pcap: neither a pcap nor a pcapng file")
	}
	if binary.BigEndian.Uint32(head) == magicNG {
		f.Format = pcapng
		return f, nil
	}
	return f, f.readHeader()
}

// Next reads one packet. It returns the packet's time and, if it completes a TCP
// segment, the segment, which is valid until the next call. After the last packet
// it returns io.EOF; after any other error the rest of the file cannot be read.
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
	case errors.Is(err, errFragment): // the defragmenter counts it
	case errors.Is(err, errQUIC):
		f.skipped.QUIC++
	case errors.Is(err, errLink):
		f.skipped.OtherLink++
	default:
		f.skipped.NotTCP++
	}
	return p.t, nil, nil
}

// Skipped returns what was skipped so far. Fragments that still wait for others
// count as skipped.
func (f *Reader) Skipped() Skipped {
	s := f.skipped
	s.Fragments = f.layers.defrag.incomplete()
	return s
}

// readHeader reads the header of a pcap file.
func (f *Reader) readHeader() error {
	h, err := f.read(24)
	if err != nil {
		return fmt.Errorf("pcap: the file's header: %w", err)
	}
	f.perTick = time.Microsecond
	magic := binary.LittleEndian.Uint32(h)
	if magic != magicMicros && magic != magicNanos {
		f.order, magic = binary.BigEndian, binary.BigEndian.Uint32(h)
	}
	if magic == magicNanos {
		f.perTick = time.Nanosecond
	}
	// The upper bits are about checksums.
	f.link = linkType(f.order.Uint32(h[20:]) & 0xffff)
	return nil
}

// nextFrame returns the next frame, or io.EOF after the last one. Any other error
// ends the file: nothing after it can be found.
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

// read reads n bytes, which are valid until the next read.
func (f *Reader) read(n int64) ([]byte, error) {
	if n > maxPacket {
		return nil, fmt.Errorf("%d bytes, more than %d", n, maxPacket)
	}
	// What fits into the reader's buffer is not copied out of it.
	if n <= int64(f.r.Size()) {
		p, err := f.r.Peek(int(n))
		if err != nil {
			return nil, noEOF(err)
		}
		_, _ = f.r.Discard(int(n))
		f.offset += n
		return p, nil
	}
	// A length is believed as far as bytes follow it.
	f.buf = f.buf[:0]
	for int64(len(f.buf)) < n {
		at := len(f.buf)
		f.buf = append(f.buf, make([]byte, min(n-int64(at), 1<<20))...)
		if _, err := io.ReadFull(f.r, f.buf[at:]); err != nil {
			return nil, noEOF(err)
		}
	}
	f.offset += n
	return f.buf, nil
}

// skip passes over n bytes.
func (f *Reader) skip(n int64) error {
	for n > 0 {
		k, err := f.r.Discard(int(min(n, math.MaxInt32)))
		f.offset += int64(k)
		n -= int64(k)
		if err != nil {
			return noEOF(err)
		}
	}
	return nil
}

// noEOF is err, where the end of the file comes too early.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
