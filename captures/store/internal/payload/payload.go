// Package payload compresses bodies and long header sections for a capture file, and decompresses them within
// limits. Package store uses it.
//
//	codec, data := packer.Pack(body)
//	body, err := unpacker.Unpack(int64(codec), int64(len(body)), data)
package payload

import (
	"bytes"
	"sync"

	"github.com/klauspost/compress/zstd"

	"unwire/captures"
)

// MaxSize is the largest size of a payload, i.e. the data of a chunk, before compression, in bytes.
const MaxSize = 64 << 20

// Codecs by which a row stores a payload; Raw is uncompressed.
const (
	Raw       = 0
	zstdCodec = 1

	// InBlob marks a segment whose data is in the table blobs.
	InBlob = 2
)

// A Packer compresses payloads to be stored. It must be used by one goroutine at a time.
type Packer struct {
	// enc compresses payloads with zstd.
	enc *zstd.Encoder

	// buf is a reused buffer for compressed data.
	buf []byte
	// sample is a reused buffer for samples of a payload, by which the Packer decides whether compression is
	// worthwhile.
	sample []byte
}

// NewPacker returns a Packer, which compresses payloads.
func NewPacker() (*Packer, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	return &Packer{enc: enc}, err
}

// Parameters for sampling large payloads, in order to decide whether to compress them. Most that cannot be
// compressed are already compressed or encrypted.
const (
	// minSampledSize is the size from which payloads are sampled, in bytes.
	minSampledSize = 8 << 10
	// samples is the number of samples, of sampleSize bytes each.
	samples    = 8
	sampleSize = 256

	// uniformTestSize is the number of bytes at the beginning of each sample that isUniform examines.
	uniformTestSize = 64
)

// maxBuffer is the size of the largest buffer that is kept for the next payload, in bytes.
const maxBuffer = 1 << 20

// Pack returns p as it is to be stored, with its codec; data is valid until the next call. p is compressed only
// if that saves at least an eighth.
func (k *Packer) Pack(p []byte) (codec int, data []byte) {
	if len(p) >= minSampledSize {
		if isUniform(p) {
			return Raw, p
		}

		// Compress the samples only. If that does not help, the rest will not compress either.
		k.sample = k.sample[:0]
		for i := range samples {
			at := sampleAt(p, i)
			k.sample = append(k.sample, p[at:at+sampleSize]...)
		}
		if !k.tryCompress(k.sample) {
			return Raw, p
		}
	}
	return k.PackUnsampled(p)
}

// sampleAt returns the offset in p of the i-th sample.
func sampleAt(p []byte, i int) int { return i * (len(p) - sampleSize) / (samples - 1) }

// isUniform reports whether all byte values are about equally frequent in the samples of p, as in compressed or
// encrypted data. It takes a fifth of the time of compressing the samples.
//
// This is Pearson's chi-squared test in the form of a sum of squared counts. For 512 random bytes, the sum is
// 1,534 on average with a standard deviation of 45; for base64 it is above 4,000, for text above 10,000.
//
// Source: https://en.wikipedia.org/wiki/Pearson%27s_chi-squared_test
func isUniform(p []byte) bool {
	var counts [256]uint16
	sum := 0
	for i := range samples {
		at := sampleAt(p, i)
		for _, c := range p[at : at+uniformTestSize] {
			// (n+1)² - n²: the increase of the squared count.
			sum += 2*int(counts[c]) + 1
			counts[c]++
		}
	}
	return sum < 1750
}

// PackUnsampled returns p as it is to be stored, with its codec, and always tries to compress it. It is for data that
// repeats itself over a long distance, such as a long header section.
func (k *Packer) PackUnsampled(p []byte) (codec int, data []byte) {
	if k.tryCompress(p) {
		return zstdCodec, k.buf
	}
	return Raw, p
}

// tryCompress compresses p into buf, and reports whether that saves enough.
func (k *Packer) tryCompress(p []byte) bool {
	if cap(k.buf) > maxBuffer {
		k.buf = nil
	}
	k.buf = k.enc.EncodeAll(p, k.buf[:0])
	return len(k.buf) <= len(p)-len(p)/8
}

// An Unpacker decompresses stored payloads. It may be used by several goroutines.
type Unpacker struct {
	// dec decompresses payloads with zstd.
	dec *zstd.Decoder

	// Verify makes readers compare decompressed payloads with their hashes. It is set for damaged files,
	// because SQLite returns zeros if a file ends within a page.
	Verify bool

	// mu guards last and inflated.
	mu sync.Mutex

	// last is the payload that was decompressed last, as a cache: equal payloads usually follow each other
	// directly.
	last cachedPayload

	// inflated is the number of payloads that were decompressed, for tests.
	inflated int64
}

// A cachedPayload is a payload in compressed and decompressed form.
type cachedPayload struct {
	// stored is the payload in compressed form; empty if nothing is cached.
	stored []byte
	// data is the payload in decompressed form; nil until the payload is read a second time, because most payloads are
	// read once only, and a copy of a large one is expensive.
	data []byte
}

// NewUnpacker returns an Unpacker, which decompresses payloads.
func NewUnpacker() (*Unpacker, error) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(MaxSize))
	return &Unpacker{dec: dec}, err
}

// Unpack decompresses a payload that Pack has compressed. size is the decompressed size that the row declares.
//
// Limits: MaxSize. Errors: ErrDamaged.
func (u *Unpacker) Unpack(codec, size int64, data []byte) (_ []byte, err error) {
	if size < 0 || size > MaxSize {
		return nil, captures.Damaged("a payload claims to have %d bytes", size)
	}
	switch codec {
	case Raw:
	case zstdCodec:
		// If the payload is longer than declared, the length check below fails.
		if data, err = u.inflate(data, size); err != nil {
			return nil, captures.Damaged("a payload cannot be decompressed: %v", err)
		}
	default:
		return nil, captures.Damaged("a payload has the unknown compression %d", codec)
	}
	if int64(len(data)) != size {
		return nil, captures.Damaged("a payload has %d bytes, but %d were declared", len(data), size)
	}
	return data, nil
}

// inflate decompresses a payload of size bytes, or returns a copy of the cached one if that is equal.
func (u *Unpacker) inflate(stored []byte, size int64) ([]byte, error) {
	u.mu.Lock()
	last := u.last
	u.mu.Unlock()
	again := len(last.stored) > 0 && bytes.Equal(stored, last.stored)
	if again && last.data != nil {
		return bytes.Clone(last.data), nil
	}
	data, err := u.dec.DecodeAll(stored, make([]byte, 0, size))
	if err != nil {
		return nil, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.inflated++
	u.last = cachedPayload{stored: stored}
	if again {
		u.last.data = bytes.Clone(data)
	}
	return data, nil
}
