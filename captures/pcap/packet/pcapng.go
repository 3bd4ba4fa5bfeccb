package packet

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/bits"
	"time"
)

// maxInterfaces limits the number of network interfaces that a section of a pcapng file describes.
const maxInterfaces = 4096

// Types of pcapng blocks that are read; others are skipped.
const (
	blockInterface = 0x00000001
	blockOldPacket = 0x00000002
	blockSimple    = 0x00000003
	blockPacket    = 0x00000006
	blockSecrets   = 0x0000000a

	// byteOrderMagic is the number in a section header that shows the byte order.
	byteOrderMagic = 0x1a2b3c4d
	secretsTLS     = 0x544c534b // "TLSK": an NSS key log
)

// Options of a pcapng interface description block that are read.
const (
	optEnd        = 0
	optResolution = 9
	optOffset     = 14
)

// A netInterface is an interface as described in a pcapng file.
type netInterface struct {
	// link is the link-layer type of the packets captured on the interface.
	link linkType
	// snap is the maximum number of captured bytes per packet; 0 means no limit.
	snap uint32
	// ticks is the resolution of the interface's timestamps, in ticks per second.
	ticks uint64
	// offset is added to all timestamps of the interface, in seconds.
	offset int64
}

// nextNG reads blocks of a pcapng file up to the next packet, and returns it.
//
// A block consists of type(4), length(4), body, padding and length(4); all are aligned to 4 bytes.
func (f *Reader) nextNG() (frame, error) {
	for {
		if _, err := f.r.Peek(1); err != nil {
			return frame{}, err
		}
		h, err := f.read(8)
		if err != nil {
			return frame{}, err
		}
		kind, length := f.order.Uint32(h), int64(f.order.Uint32(h[4:]))
		// A section header sets the byte order of all following blocks.
		if kind == magicNG {
			if err := f.readSection([4]byte(h[4:8])); err != nil {
				return frame{}, err
			}
			continue
		}
		if length < 12 || length%4 != 0 {
			return frame{}, fmt.Errorf("a block of type 0x%x has the invalid length %d", kind, length)
		}

		// Blocks of unknown types are skipped by their length, as the format demands.
		if !f.isNeeded(kind) {
			if err := f.skip(length - 8); err != nil {
				return frame{}, err
			}
			continue
		}
		body, err := f.read(length - 8)
		if err != nil {
			return frame{}, fmt.Errorf("block of type 0x%x: %w", kind, err)
		}
		p, ok, err := f.readBlock(kind, body[:len(body)-4])
		if ok || err != nil {
			return p, err
		}
	}
}

// isNeeded reports whether pcapng blocks of a type must be read rather than skipped.
func (f *Reader) isNeeded(kind uint32) bool {
	switch kind {
	case blockSecrets:
		return f.onKeys != nil
	case blockInterface, blockOldPacket, blockSimple, blockPacket:
		return !f.keysOnly
	}
	return false
}

// readSection reads a pcapng section header, which sets the byte order and removes all interfaces. rawLength is
// the block's length field, before the byte order is known.
func (f *Reader) readSection(rawLength [4]byte) error {
	magic, err := f.read(4)
	if err != nil {
		return err
	}
	switch {
	case binary.LittleEndian.Uint32(magic) == byteOrderMagic:
		f.order = binary.LittleEndian
	case binary.BigEndian.Uint32(magic) == byteOrderMagic:
		f.order = binary.BigEndian
	default:
		return fmt.Errorf("the section header has the invalid byte-order magic %x", magic)
	}
	f.interfaces = f.interfaces[:0]
	length := int64(f.order.Uint32(rawLength[:]))
	if length < 28 || length%4 != 0 {
		return fmt.Errorf("the section header has the invalid length %d", length)
	}
	return f.skip(length - 12)
}

// readBlock parses the body of a pcapng block; ok means that it contains a packet.
func (f *Reader) readBlock(kind uint32, b []byte) (p frame, ok bool, err error) {
	switch kind {
	case blockInterface:
		return p, false, f.addInterface(b)
	case blockSecrets:
		f.readSecrets(b)
		return p, false, nil
	case blockSimple:
		if len(b) < 4 || len(f.interfaces) == 0 {
			return p, false, fmt.Errorf("a simple packet block has only %d bytes, or refers to an interface that the file lacks (%d interfaces): %w", len(b), len(f.interfaces), io.ErrUnexpectedEOF)
		}
		i := f.interfaces[0]
		whole, kept := f.order.Uint32(b), uint32(len(b)-4)
		if i.snap > 0 {
			kept = min(kept, i.snap)
		}
		// The block has no time, so use 1970.
		return frame{i.link, time.Unix(0, 0), b[4 : 4+min(kept, whole)], kept < whole}, true, nil
	}
	return f.readPacketBlock(kind, b)
}

// readPacketBlock parses the body of a pcapng packet block: interface(4) time(8) captured length(4) original
// length(4) data. In blocks of the old kind, the upper half of interface is a count of dropped packets.
func (f *Reader) readPacketBlock(kind uint32, b []byte) (p frame, ok bool, err error) {
	if len(b) < 20 {
		return p, false, fmt.Errorf("a packet block has only %d bytes: %w", len(b), io.ErrUnexpectedEOF)
	}
	n := f.order.Uint32(b)
	if kind == blockOldPacket {
		n = uint32(f.order.Uint16(b))
	}
	kept, whole := f.order.Uint32(b[12:]), f.order.Uint32(b[16:])
	switch {
	case int64(n) >= int64(len(f.interfaces)):
		return p, false, fmt.Errorf("a packet refers to interface %d, but the file has only %d interfaces", n, len(f.interfaces))
	case int64(kept) > int64(len(b)-20):
		return p, false, fmt.Errorf("a packet of %d bytes does not fit into its block of %d bytes: %w", kept, len(b), io.ErrUnexpectedEOF)
	}
	i := f.interfaces[n]
	ticks := uint64(f.order.Uint32(b[4:]))<<32 | uint64(f.order.Uint32(b[8:]))
	return frame{i.link, i.time(ticks), b[20 : 20+kept], kept < whole}, true, nil
}

// time converts a timestamp of the interface, in its ticks, to a time.
func (i *netInterface) time(ticks uint64) time.Time {
	hi, lo := bits.Mul64(ticks%i.ticks, uint64(time.Second))
	// The product is less than ticks per second times 10^9, so the quotient fits into 64 bits.
	nanos, _ := bits.Div64(hi, lo, i.ticks)
	return time.Unix(int64(ticks/i.ticks)+i.offset, int64(nanos))
}

// addInterface parses the body of a pcapng interface description block: linktype(2) reserved(2) snaplen(4)
// options.
func (f *Reader) addInterface(b []byte) error {
	if len(b) < 8 {
		return fmt.Errorf("an interface block has only %d bytes: %w", len(b), io.ErrUnexpectedEOF)
	}
	if len(f.interfaces) == maxInterfaces {
		return fmt.Errorf("the file has more than %d interfaces", maxInterfaces)
	}
	i := netInterface{link: linkType(f.order.Uint16(b)), snap: f.order.Uint32(b[4:]), ticks: 1e6}
	// Options are padded to 4 bytes; only the time resolution and offset matter here.
	for b = b[8:]; len(b) >= 4; {
		code, n := f.order.Uint16(b), int(f.order.Uint16(b[2:]))
		if code == optEnd || 4+n > len(b) {
			break
		}
		v := b[4 : 4+n]
		switch {
		case code == optResolution && n == 1:
			ticks, err := resolution(v[0])
			if err != nil {
				return err
			}
			i.ticks = ticks
		case code == optOffset && n == 8:
			i.offset = int64(f.order.Uint64(v))
		}
		b = b[min(len(b), 4+(n+3)&^3):]
	}
	f.interfaces = append(f.interfaces, i)
	return nil
}

// resolution returns the ticks per second for the value of an if_tsresol option: a power of two if the upper
// bit is set, otherwise a power of ten.
func resolution(v byte) (uint64, error) {
	n := int(v & 0x7f)
	switch {
	case v&0x80 != 0 && n < 63:
		return 1 << n, nil
	case v&0x80 == 0 && n <= 18:
		return uint64(math.Round(math.Pow10(n))), nil
	}
	return 0, fmt.Errorf("an interface block has the unsupported time resolution 0x%02x", v)
}

// readSecrets passes the key log in a decryption secrets block to onKeys. The body is: type(4) length(4) data.
func (f *Reader) readSecrets(b []byte) {
	if len(b) < 8 || f.order.Uint32(b) != secretsTLS {
		return
	}
	data := b[8:]
	f.onKeys(data[:min(int64(len(data)), int64(f.order.Uint32(b[4:])))])
}
