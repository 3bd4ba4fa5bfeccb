// Package payload compresses what a capture stores of bodies, and inflates it within
// limits. Package store writes and reads payloads with it.
package payload

import (
	"bytes"
	"sync"

	"github.com/klauspost/compress/zstd"

	"unwire/captures"
)

// MaxSize is the most bytes that a payload has, and may inflate to.
const MaxSize = 64 << 20

// Codecs of a stored payload.
const (
	Raw       = 0
	zstdCodec = 1

	// InBlob is that of a segment whose data is a payload of the table blobs.
	InBlob = 2
)

// A Packer compresses payloads. It is for one goroutine.
type Packer struct {
	enc    *zstd.Encoder
	buf    []byte
	sample []byte
}

// NewPacker returns a Packer.
func NewPacker() (*Packer, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	return &Packer{enc: enc}, err
}

// Samples of a payload tell whether it may be worth to compress it: most that is not is
// compressed or encrypted already.
const (
	sampledFrom = 8 << 10 // bytes
	samples     = 8
	sampleSize  = 256 // bytes

	// glanceSize is how many bytes at the beginning of each sample are looked at first.
	glanceSize = 64
)

// maxBuffer is how many bytes of memory are kept for the next payload.
const maxBuffer = 1 << 20

// Pack returns p as it is stored, until the next call; compression must save an eighth to be
// worth it.
func (k *Packer) Pack(p []byte) (codec int, data []byte) {
	if len(p) >= sampledFrom {
		if isUniform(p) {
			return Raw, p
		}
		k.sample = k.sample[:0]
		for i := range samples {
			at := sampleAt(p, i)
			k.sample = append(k.sample, p[at:at+sampleSize]...)
		}
		if !k.compress(k.sample) {
			return Raw, p
		}
	}
	return k.PackWhole(p)
}

// sampleAt is where a sample of p begins.
func sampleAt(p []byte, i int) int { return i * (len(p) - sampleSize) / (samples - 1) }

// isUniform reports whether the samples of p have all bytes alike often, as what is
// compressed or encrypted has: to compress them would take five times as long. It is the
// chi-squared test: the squares of how often each of 256 bytes occurs among 512 have a sum
// of 1,534 on average, and a standard deviation of 45, if the bytes are random; of text it
// is above 10,000, of base64 above 4,000.
func isUniform(p []byte) bool {
	var counts [256]uint16
	sum := 0
	for i := range samples {
		at := sampleAt(p, i)
		for _, c := range p[at : at+glanceSize] {
			sum += 2*int(counts[c]) + 1 // the next square
			counts[c]++
		}
	}
	return sum < 1750
}

// PackWhole is Pack without samples, for what may repeat itself over a long distance, as
// the fields of a long section of headers do.
func (k *Packer) PackWhole(p []byte) (codec int, data []byte) {
	if k.compress(p) {
		return zstdCodec, k.buf
	}
	return Raw, p
}

// compress compresses p into buf, and reports whether that is worth it.
func (k *Packer) compress(p []byte) bool {
	if cap(k.buf) > maxBuffer {
		k.buf = nil
	}
	k.buf = k.enc.EncodeAll(p, k.buf[:0])
	return len(k.buf) <= len(p)-len(p)/8
}

// An Unpacker inflates payloads; it may be used by many goroutines.
type Unpacker struct {
	dec *zstd.Decoder

	// Verify says that payloads have to be compared with their hashes: the file is damaged,
	// and SQLite reads zeros where it ends within a page.
	Verify bool

	mu sync.Mutex

	// last is the payload that was inflated last: what repeats mostly does so at once.
	last packed

	inflated int64 // how many payloads were inflated
}

// packed is a payload as it is stored, and inflated.
type packed struct{ stored, data []byte }

// NewUnpacker returns an Unpacker.
func NewUnpacker() (*Unpacker, error) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(MaxSize))
	return &Unpacker{dec: dec}, err
}

// Unpack reverses Pack. Size is what the row declares.
//
// Limits: size is at most MaxSize and the data may not inflate to more.
// Errors: ErrDamaged.
func (u *Unpacker) Unpack(codec, size int64, data []byte) (_ []byte, err error) {
	if size < 0 || size > MaxSize {
		return nil, captures.Damaged("a payload declares %d bytes", size)
	}
	switch codec {
	case Raw:
	case zstdCodec:
		// A payload that is longer than declared fails below.
		if data, err = u.inflate(data, size); err != nil {
			return nil, captures.Damaged("a payload does not inflate: %v", err)
		}
	default:
		return nil, captures.Damaged("a payload has the unknown codec %d", codec)
	}
	if int64(len(data)) != size {
		return nil, captures.Damaged("a payload has %d bytes where %d were declared", len(data), size)
	}
	return data, nil
}

// inflate inflates a payload, or returns a copy of the last one if it is that.
func (u *Unpacker) inflate(stored []byte, size int64) ([]byte, error) {
	u.mu.Lock()
	last := u.last
	u.mu.Unlock()
	if len(last.stored) > 0 && bytes.Equal(stored, last.stored) {
		return bytes.Clone(last.data), nil
	}
	data, err := u.dec.DecodeAll(stored, make([]byte, 0, size))
	if err != nil {
		return nil, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.inflated++
	u.last = packed{stored, bytes.Clone(data)}
	return data, nil
}
