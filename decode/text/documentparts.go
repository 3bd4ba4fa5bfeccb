package text

import (
	"fmt"
	"strings"

	"unwire/decode/envelope"
	"unwire/decode/wire"
)

// A Part is a section of a document: an envelope, a delimited message, or bytes outside of either.
type Part struct {
	// Off is the offset of Head in the document's bytes.
	Off int

	// Head is an envelope's flags and length, or a delimited message's length. It is empty for other parts.
	Head []byte

	// Raw are the bytes of the part after Head.
	Raw []byte

	// Data is Raw after decompression.
	Data []byte

	// DataOff is the offset of Data in the document's bytes, or -1 if it was compressed.
	DataOff int

	// Title describes the part in words.
	Title string

	// Kind is the kind of Data: "message", "text" or "bytes".
	Kind string
}

// Source returns how the input encoded the document's bytes: "hex", "base64", "gzip", or two of them separated
// by a space. It returns "" for plain bytes.
func (d *Document) Source() string {
	words := d.source.form
	if words == "raw" {
		words = ""
	}
	return strings.TrimSpace(words + " " + d.source.packed)
}

// Parts calls f for each part, in order. A message that is not in an envelope is divided into parts of whole
// fields.
func (d *Document) Parts(f func(Part) error) error {
	off := 0
	switch d.As {
	case "frames":
		return d.pieces(func(p envelopePiece) error {
			part := d.framePart(p, off)
			off += len(part.Head) + len(part.Raw)
			return f(part)
		})
	case "delimited":
		// Bytes behind the last complete message are a part of their own, so that the parts cover the
		// whole document.
		return delimited(d.Data, func(m delimitedPiece) error {
			part := Part{Off: off, DataOff: off, Raw: m.data, Data: m.data, Kind: "bytes", Title: "the remaining bytes are not a delimited message"}
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

	// A plain message, in segments that bound the memory.
	for off < len(d.Data) {
		data := segment(d.Data[off:], d.o.segmentLen)
		if err := f(Part{Off: off, DataOff: off, Raw: data, Data: data, Kind: "message"}); err != nil {
			return err
		}
		off += len(data)
	}
	return nil
}

// framePart returns the part for the envelope p, or for bytes that are not in one. off is its offset in the
// document.
func (d *Document) framePart(p envelopePiece, off int) Part {
	if !p.framed {
		return Part{Off: off, DataOff: off, Raw: p.raw, Data: p.raw, Kind: "bytes", Title: "the remaining bytes are not a gRPC frame"}
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

	// The flags distinguish messages from JSON and trailers. Otherwise the data itself decides.
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
