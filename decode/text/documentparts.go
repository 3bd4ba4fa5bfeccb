package text

import (
	"fmt"
	"strings"

	"unwire/decode/envelope"
	"unwire/decode/wire"
)

// A Part is a stretch of a document: an envelope, a delimited message, or what
// stands in none.
type Part struct {
	Off int // of Head in the document's bytes

	// An envelope's flags and length, a delimited message's length; empty for neither.
	Head []byte

	Raw     []byte // what follows it
	Data    []byte // Raw, decompressed
	DataOff int    // of Data in the document's bytes; -1 where it was decompressed
	Title   string // what the head says
	Kind    string // what Data is: "message", "text" or "bytes"
}

// Source says how the input was written, if not as the bytes that it is: "hex",
// "base64", "gzip"; "" for neither.
func (d *Document) Source() string {
	words := d.source.form
	if words == "raw" {
		words = ""
	}
	return strings.TrimSpace(words + " " + d.source.packed)
}

// Parts calls f for every part, in order; a message without a head comes in
// pieces of whole fields.
func (d *Document) Parts(f func(Part) error) error {
	off := 0
	switch d.As {
	case "frames":
		return d.pieces(func(p piece) error {
			part := d.framePart(p, off)
			off += len(part.Head) + len(part.Raw)
			return f(part)
		})
	case "delimited":
		return delimited(d.Data, func(m delimitedPiece) error {
			part := Part{Off: off, DataOff: off, Raw: m.data, Data: m.data, Kind: "bytes", Title: "the rest is no delimited message"}
			if m.whole {
				n := wire.SizeVarint(uint64(len(m.data))) + m.long
				part.Head, part.DataOff, part.Kind = d.Data[off:off+n], off+n, "message"
				part.Title = fmt.Sprintf("message of %d bytes", len(m.data))
			}
			off += len(part.Head) + len(part.Raw)
			return f(part)
		})
	case "text":
		return f(Part{Data: d.Data, Raw: d.Data, Kind: "text"})
	}
	for off < len(d.Data) {
		data := segment(d.Data[off:], d.o.segmentLen)
		if err := f(Part{Off: off, DataOff: off, Raw: data, Data: data, Kind: "message"}); err != nil {
			return err
		}
		off += len(data)
	}
	return nil
}

func (d *Document) framePart(p piece, off int) Part {
	if !p.framed {
		return Part{Off: off, DataOff: off, Raw: p.raw, Data: p.raw, Kind: "bytes", Title: "the rest is no envelope"}
	}
	part := Part{Off: off, Head: d.Data[off : off+envelope.PrefixLen], Raw: p.raw, Data: p.data, DataOff: off + envelope.PrefixLen}
	part.Title = fmt.Sprintf("envelope, flags %s, %d bytes", p.flags, envelope.ParsePrefix(part.Head).Length)
	if uint64(p.length) != uint64(len(p.raw)) {
		part.Title += fmt.Sprintf(", of which %d are there", len(p.raw))
	}
	if p.encoding != "" {
		part.Title += fmt.Sprintf(", %s of %d", p.encoding, len(p.data))
		part.DataOff = -1
	}
	switch {
	case p.flags&^envelope.Compressed != 0 && isPlain(p.data):
		part.Kind = "text"
	case p.flags&envelope.Compressed != 0 && p.encoding == "":
		part.Kind = "bytes"
	default:
		if part.Kind = shapeOf(p.data, d.o, new(wire.Tree)); part.Kind != "text" {
			part.Kind = "message"
		}
	}
	return part
}
