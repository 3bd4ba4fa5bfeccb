package packet

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/bits"
	"time"
)

// maxInterfaces limits the interfaces of a section.
const maxInterfaces = 4096

// The blocks that are read; all others are passed over.
const (
	blockInterface = 0x00000001
	blockOldPacket = 0x00000002
	blockSimple    = 0x00000003
	blockPacket    = 0x00000006
	blockSecrets   = 0x0000000a

	byteOrderMagic = 0x1a2b3c4d
	secretsTLS     = 0x544c534b // "TLSK": an NSS key log
)

// The options of an interface that are read.
const (
	optEnd        = 0
	optResolution = 9
	optOffset     = 14
)

// A netInterface is an interface as its section of a pcapng file describes it.
type netInterface struct {
	link   linkType
	snap   uint32
	ticks  uint64 // per second
	offset int64  // seconds
}

// nextNG reads blocks up to a packet.
//
// Layout of a block: type(4) length(4) body padding length(4), all 4-aligned.
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
		if kind == magicNG {
			if err := f.readSection([4]byte(h[4:8])); err != nil {
				return frame{}, err
			}
			continue
		}
		if length < 12 || length%4 != 0 {
			return frame{}, fmt.Errorf("block of type 0x%x: its length is %d", kind, length)
		}
		if !f.isRead(kind) {
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

func (f *Reader) isRead(kind uint32) bool {
	switch kind {
	case blockSecrets:
		return f.onKeys != nil
	case blockInterface, blockOldPacket, blockSimple, blockPacket:
		return !f.keysOnly
	}
	return false
}

// readSection begins a section: its byte order is told, the interfaces are forgotten.
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
		return fmt.Errorf("section header: byte order magic is %x", magic)
	}
	f.interfaces = f.interfaces[:0]
	length := int64(f.order.Uint32(rawLength[:]))
	if length < 28 || length%4 != 0 {
		return fmt.Errorf("section header: its length is %d", length)
	}
	return f.skip(length - 12)
}

// readBlock reads the body of a block; ok says that it is a packet.
func (f *Reader) readBlock(kind uint32, b []byte) (p frame, ok bool, err error) {
	switch kind {
	case blockInterface:
		return p, false, f.addInterface(b)
	case blockSecrets:
		f.readSecrets(b)
		return p, false, nil
	case blockSimple:
		if len(b) < 4 || len(f.interfaces) == 0 {
			return p, false, fmt.Errorf("simple packet of %d bytes, %d interfaces: %w", len(b), len(f.interfaces), io.ErrUnexpectedEOF)
		}
		i := f.interfaces[0]
		whole, kept := f.order.Uint32(b), uint32(len(b)-4)
		if i.snap > 0 {
			kept = min(kept, i.snap)
		}
		// Without a time of its own it has the beginning of time.
		return frame{i.link, time.Unix(0, 0), b[4 : 4+min(kept, whole)], kept < whole}, true, nil
	}
	return f.readPacketBlock(kind, b)
}

// readPacketBlock reads interface(4) time(8) kept(4) whole(4) data. In old packet
// blocks, the upper half of interface counts dropped packets.
func (f *Reader) readPacketBlock(kind uint32, b []byte) (p frame, ok bool, err error) {
	if len(b) < 20 {
		return p, false, fmt.Errorf("packet block of %d bytes: %w", len(b), io.ErrUnexpectedEOF)
	}
	n := f.order.Uint32(b)
	if kind == blockOldPacket {
		n = uint32(f.order.Uint16(b))
	}
	kept, whole := f.order.Uint32(b[12:]), f.order.Uint32(b[16:])
	switch {
	case int64(n) >= int64(len(f.interfaces)):
		return p, false, fmt.Errorf("packet of interface %d of %d", n, len(f.interfaces))
	case int64(kept) > int64(len(b)-20):
		return p, false, fmt.Errorf("packet of %d bytes in a block of %d: %w", kept, len(b), io.ErrUnexpectedEOF)
	}
	i := f.interfaces[n]
	ticks := uint64(f.order.Uint32(b[4:]))<<32 | uint64(f.order.Uint32(b[8:]))
	return frame{i.link, i.time(ticks), b[20 : 20+kept], kept < whole}, true, nil
}

func (i *netInterface) time(ticks uint64) time.Time {
	hi, lo := bits.Mul64(ticks%i.ticks, uint64(time.Second))
	// The product is below the ticks per second times 10^9: the quotient fits.
	nanos, _ := bits.Div64(hi, lo, i.ticks)
	return time.Unix(int64(ticks/i.ticks)+i.offset, int64(nanos))
}

// addInterface reads linktype(2) reserved(2) snaplen(4) options.
func (f *Reader) addInterface(b []byte) error {
	if len(b) < 8 {
		return fmt.Errorf("interface block of %d bytes: %w", len(b), io.ErrUnexpectedEOF)
	}
	if len(f.interfaces) == maxInterfaces {
		return fmt.Errorf("more than %d interfaces", maxInterfaces)
	}
	i := netInterface{link: linkType(f.order.Uint16(b)), snap: f.order.Uint32(b[4:]), ticks: 1e6}
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

// resolution returns the ticks per second that if_tsresol means: a power of
// two where its upper bit is set, of ten where it is not.
func resolution(v byte) (uint64, error) {
	n := int(v & 0x7f)
	switch {
	case v&0x80 != 0 && n < 63:
		return 1 << n, nil
	case v&0x80 == 0 && n <= 18:
		return uint64(math.Round(math.Pow10(n))), nil
	}
	return 0, fmt.Errorf("interface block: a time resolution of 0x%02x", v)
}

// readSecrets reads a block of decryption secrets: type(4) length(4) data.
func (f *Reader) readSecrets(b []byte) {
	if len(b) < 8 || f.order.Uint32(b) != secretsTLS {
		return
	}
	data := b[8:]
	f.onKeys(data[:min(int64(len(data)), int64(f.order.Uint32(b[4:])))])
}
