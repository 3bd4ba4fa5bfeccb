package text

import (
	"crypto/sha256"
	"encoding/hex"

	"unwire/decode/envelope"
	"unwire/decode/wire"
)

// A frameForm is the printed header of an envelope: the words between "frame" and its brace.
type frameForm struct {
	// flags is the envelope's first byte.
	flags uint8

	// length is the length to write into the envelope, or -1 for the actual length.
	length int64

	// encoding is the compression of the payload, or "".
	encoding string

	// hash is the hash of the data from which the sender made raw. If the parsed data has another hash, it was
	// edited.
	hash string

	// raw is the sender's compressed payload. It is used instead of compressing again if the data is unedited; nil
	// if the text does not have it.
	raw []byte
}

// openFrame parses the header of an envelope: `frame FLAGS … {`.
func (p *parser) openFrame() error {
	if len(p.levels) > 0 {
		return p.fail("a frame cannot be nested inside a message")
	}
	if err := p.noLong(); err != nil {
		return err
	}
	p.out = p.assemble(p.out)
	p.pos += len("frame")
	p.space()
	flags := p.word()
	v, err := parseNumber(flags)
	if err != nil || v.typ != wire.Varint || v.bits > 0xff {
		return p.fail("the flags %.20q are not a number up to 0xff", flags)
	}
	p.pos += len(flags)
	// Options of the frame may follow in any order, up to the brace.
	p.frame = frameForm{flags: uint8(v.bits), length: -1}
	for {
		p.space()
		if p.pos < len(p.src) && p.src[p.pos] == '{' {
			return p.openLevel('f', 1, 0)
		}
		if err := p.frameWord(); err != nil {
			return err
		}
	}
}

// frameWord parses one word after the flags in the header of an envelope.
func (p *parser) frameWord() error {
	word := p.word()
	at := p.pos
	p.pos += len(word)
	valued := p.pos < len(p.src) && p.src[p.pos] == ':'
	if valued {
		p.pos++
	}

	// A word with a colon is an attribute; one without is the compression.
	switch {
	case string(word) == "len" && valued:
		w := p.word()
		v, err := parseNumber(w)
		if err != nil || v.typ != wire.Varint || v.bits > 1<<32-1 {
			return p.fail("the length %.20q is not a number below 2^32", w)
		}
		p.pos += len(w)
		p.frame.length = int64(v.bits)
	case string(word) == "of" && valued:
		p.frame.hash = string(p.word())
		p.pos += len(p.frame.hash)
	case string(word) == "raw" && valued:
		// hexLiteral appends to body, so replace it for a moment.
		body := p.body
		p.body = nil
		if p.pos >= len(p.src) || p.src[p.pos] != '`' {
			return p.fail("raw: must be followed by `hex`")
		}
		err := p.hexLiteral()
		p.frame.raw, p.body = p.body, body
		return err
	case len(word) > 0 && !valued:
		if _, err := envelope.Compress(string(word), nil); err != nil {
			p.pos = at
			return p.advise("the compression is gzip, br, zstd or deflate; write flags as in frame 0x02 { … }", "%w", err)
		}
		p.frame.encoding = string(word)
	default:
		p.pos = at
		return p.fail("a frame needs an opening brace")
	}

	return nil
}

// closeFrame appends the envelope whose brace was closed.
func (p *parser) closeFrame() error {
	f := p.frame
	payload := p.assemble([]byte{})
	out, err := f.append(p.out, payload)
	if err != nil {
		return p.fail("%w", err)
	}
	p.out = out
	return nil
}

// append appends the envelope for payload, which it compresses first if necessary.
func (f *frameForm) append(dst, payload []byte) ([]byte, error) {
	if f.encoding != "" {
		sum := sha256.Sum256(payload)
		// The payload is unedited, so the original compressed bytes are still right.
		if f.hash != "" && f.hash == hex.EncodeToString(sum[:16]) {
			payload = f.raw
		} else {
			var err error
			if payload, err = envelope.Compress(f.encoding, payload); err != nil {
				return dst, err
			}
		}
	}
	prefix := envelope.Prefix{Flags: envelope.Flags(f.flags), Length: uint32(len(payload))}
	if f.length >= 0 {
		prefix.Length = uint32(f.length)
	}
	return append(prefix.Append(dst), payload...), nil
}
