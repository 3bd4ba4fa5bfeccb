package pcap

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

const (
	maxPacket     = 16 << 20 // bytes of a packet, or of a block that is read
	maxInterfaces = 4096     // of a pcapng section
)

// The first four bytes of a file, as its writer's machine orders them.
const (
	magicMicros = 0xa1b2c3d4
	magicNanos  = 0xa1b23c4d
	magicNG     = 0x0a0d0d0a // the same in both orders
)

// A packet is a captured frame of some link layer.
type packet struct {
	link linkType
	t    time.Time
	data []byte // until the next one is read
	cut  bool   // the capture kept only its beginning
}

// A fileReader reads the packets of a pcap or pcapng file one after the other.
//
// Limits: a packet of 16 MiB. Source: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html
type fileReader struct {
	r          *bufio.Reader
	offset     int64 // of what is read next
	order      binary.ByteOrder
	interfaces []netInterface
	buf        []byte

	ng       bool
	link     linkType         // of a pcap file
	perTick  time.Duration    // of a pcap file
	keys     func(log []byte) // gets the NSS key log of each secrets block
	keysOnly bool             // packets are skipped
}

// Sniff reports whether a file that begins with head is pcap or pcapng.
func Sniff(head []byte) bool {
	if len(head) < 4 {
		return false
	}
	le, be := binary.LittleEndian.Uint32(head), binary.BigEndian.Uint32(head)
	return be == magicNG || le == magicMicros || be == magicMicros || le == magicNanos || be == magicNanos
}

// newFileReader reads the beginning of a file.
func newFileReader(r io.Reader, keys func([]byte)) (*fileReader, error) {
	f := &fileReader{r: bufio.NewReaderSize(r, 1<<20), keys: keys, order: binary.LittleEndian}
	head, err := f.r.Peek(4)
	if err != nil {
		return nil, fmt.Errorf("pcap: the file's beginning: %w", noEOF(err))
	}
	if !Sniff(head) {
		return nil, errors.New("pcap: neither a pcap nor a pcapng file")
	}
	if binary.BigEndian.Uint32(head) == magicNG {
		f.ng = true
		return f, nil
	}
	return f, f.readHeader()
}

// readHeader reads the header of a pcap file.
func (f *fileReader) readHeader() error {
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
	f.link = linkType(f.order.Uint32(h[20:]) & 0xffff) // the upper bits are about checksums
	return nil
}

// next returns the next packet, or io.EOF after the last one. Any other error
// ends the file: nothing after it can be found.
func (f *fileReader) next() (packet, error) {
	start := f.offset
	var p packet
	var err error
	if f.ng {
		p, err = f.nextNG()
	} else {
		p, err = f.nextClassic()
	}
	if err != nil && err != io.EOF {
		err = fmt.Errorf("pcap: packet at 0x%x: %w", start, err)
	}
	return p, err
}

func (f *fileReader) nextClassic() (packet, error) {
	if _, err := f.r.Peek(1); err != nil {
		return packet{}, err
	}
	h, err := f.read(16)
	if err != nil {
		return packet{}, err
	}
	sec, frac := int64(f.order.Uint32(h)), int64(f.order.Uint32(h[4:]))
	kept, whole := f.order.Uint32(h[8:]), f.order.Uint32(h[12:])
	data, err := f.read(int64(kept))
	if err != nil {
		return packet{}, err
	}
	return packet{f.link, time.Unix(sec, frac*int64(f.perTick)), data, kept < whole}, nil
}

// read reads n bytes, which are valid until the next read.
func (f *fileReader) read(n int64) ([]byte, error) {
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
func (f *fileReader) skip(n int64) error {
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
