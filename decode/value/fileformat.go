package value

import (
	"encoding/binary"
	"strings"
)

// A fileFormat describes the first bytes of files of one format.
type fileFormat struct {
	// name is the format's name in results, such as "png".
	name string

	// magic are the first bytes of the file.
	magic string

	// also are further fixed bytes, at the offset at.
	also string

	// at is the offset of the bytes in also.
	at int

	// fits, if not nil, checks the rest of the file's structure.
	fits func(p []byte) bool
}

// fileFormats are formats that occur in bytes fields. Each is identified by three or more characteristic bytes,
// or by a structure that is checked to the last byte.
var fileFormats = [...]fileFormat{
	{name: "gzip", magic: "\x1f\x8b\x08"},

	// Its magic number parses as protobuf: a field 5 and the beginning of a tag.
	{name: "zstd", magic: "\x28\xb5\x2f\xfd"},

	{name: "zlib", magic: "\x78", fits: isZlib},
	{name: "lz4", magic: "\x04\x22\x4d\x18"},
	{name: "snappy", magic: "\xff\x06\x00\x00sNaPpY"},
	{name: "s2", magic: "\xff\x06\x00\x00S2sTwO"},
	{name: "xz", magic: "\xfd7zXZ\x00"},
	{name: "bzip2", magic: "BZh", also: "1AY&SY", at: 4},
	{name: "7z", magic: "7z\xbc\xaf\x27\x1c"},
	{name: "rar", magic: "Rar!\x1a\x07"},
	{name: "zip", magic: "PK\x03\x04"},
	// An empty archive.
	{name: "zip", magic: "PK\x05\x06\x00\x00"},
	{name: "png", magic: "\x89PNG\r\n\x1a\n"},
	{name: "jpeg", magic: "\xff\xd8\xff"},
	{name: "gif", magic: "GIF89a"},
	{name: "gif", magic: "GIF87a"},
	{name: "webp", magic: "RIFF", also: "WEBP", at: 8},
	{name: "tiff", magic: "II*\x00"},
	{name: "tiff", magic: "MM\x00*"},
	{name: "bmp", magic: "BM", fits: func(p []byte) bool { return sized(p, 2) && len(p) >= 26 }},
	{name: "wav", magic: "RIFF", also: "WAVE", at: 8},
	{name: "ogg", magic: "OggS\x00"},
	{name: "flac", magic: "fLaC\x00"},
	{name: "mp3", magic: "ID3", fits: func(p []byte) bool { return len(p) > 10 && p[3] >= 2 && p[3] <= 4 && p[4] == 0 }},
	{name: "mp4", also: "ftyp", at: 4, fits: func(p []byte) bool { return p[0]|p[1]|p[2] == 0 }},
	{name: "webm", magic: "\x1a\x45\xdf\xa3"},
	{name: "pdf", magic: "%PDF-"},
	{name: "woff", magic: "wOFF\x00"},
	{name: "woff2", magic: "wOF2\x00"},
	{name: "font", magic: "OTTO\x00"},
	{name: "elf", magic: "\x7fELF"},
	{name: "wasm", magic: "\x00asm\x01\x00\x00\x00"},
	{name: "mach-o", magic: "\xcf\xfa\xed\xfe"},
	{name: "exe", magic: "MZ", fits: isExecutable},
	{name: "java class", magic: "\xca\xfe\xba\xbe\x00\x00\x00"},
	{name: "java object", magic: "\xac\xed\x00\x05"},
	{name: "pickle", magic: "\x80", fits: isPickle},
	{name: "numpy", magic: "\x93NUMPY"},
	{name: "hdf5", magic: "\x89HDF\r\n\x1a\n"},
	{name: "sqlite", magic: "SQLite format 3\x00"},
	{name: "parquet", magic: "PAR1", fits: func(p []byte) bool { return len(p) >= 12 && string(p[len(p)-4:]) == "PAR1" }},
	{name: "arrow", magic: "ARROW1\x00"},
	{name: "avro", magic: "Obj\x01"},
	{name: "der", magic: "\x30", fits: isDER},
	{name: "msgpack", fits: isMessagePack},
	{name: "cbor", fits: isCBOR},
	{name: "bson", fits: isBSON},
	{name: "tar", also: tarMagic, at: tarAt},
}

// A tar file has the magic number tarMagic at offset tarAt, after the name and the numbers of its first entry.
const (
	tarMagic = "ustar"
	tarAt    = 257
)

// fileFirst indexes fileFormats by the first byte of a payload, so that most payloads are compared with few
// formats.
var fileFirst = func() (t [256][]*fileFormat) {
	for i := range fileFormats {
		f := &fileFormats[i]
		for c := range t {
			if f.begins(byte(c)) {
				t[c] = append(t[c], f)
			}
		}
	}
	return t
}()

// begins reports whether a file of the format may begin with byte c. A format that is identified by later bytes
// only is listed under first bytes that text does not have.
func (f *fileFormat) begins(c byte) bool {
	switch {
	case f.magic != "":
		return c == f.magic[0]
	case f.name == "msgpack":
		return c >= 0x81 && c <= 0x8f || c == 0xde || c == 0xdf
	case f.name == "cbor":
		return c >= 0xa1 && c <= 0xb9 || c == 0xbf || c == 0xd9
	case f.name == "mp4":
		return c == 0
	}
	// Formats that begin with a size or a name are checked separately by FileFormat.
	return false
}

// has reports whether p is a file of the format f.
func (f *fileFormat) has(p []byte) bool {
	return len(p) > len(f.magic) && string(p[:len(f.magic)]) == f.magic &&
		(f.also == "" || len(p) >= f.at+len(f.also) && string(p[f.at:][:len(f.also)]) == f.also) &&
		(f.fits == nil || f.fits(p))
}

// FileFormat returns the name of p's file format or compression, such as "png", "zstd" or "cbor". It returns ""
// for other data. Formats without a magic number are recognized by their structure.
func FileFormat(p []byte) string {
	if len(p) < 3 {
		return ""
	}
	for _, f := range fileFirst[p[0]] {
		if f.has(p) {
			return f.name
		}
	}
	// These formats have no characteristic first byte.
	switch n := len(p); {
	case n >= tarAt+len(tarMagic) && p[tarAt] == 'u' && string(p[tarAt:][:len(tarMagic)]) == tarMagic:
		return "tar"
	case p[n-1] == 0 && isBSON(p):
		return "bson"
	}
	return ""
}

// isBSON reports whether p is a BSON document. It checks the size, the type of the first element, and the zero at
// the end. Source: https://bsonspec.org/spec.html
func isBSON(p []byte) bool {
	return len(p) > 8 && sized(p, 0) && p[len(p)-1] == 0 && p[4] >= 1 && p[4] <= 0x13
}

// sized reports whether the four bytes at offset at are the size of p, little-endian.
func sized(p []byte, at int) bool {
	return len(p) >= at+4 && int64(binary.LittleEndian.Uint32(p[at:])) == int64(len(p))
}

// isZlib reports whether p looks like a zlib stream. It checks the two bytes of the header and the beginning of the
// first block: a stored block has its length twice, and no Huffman tree has more than 286 codes. Source: RFC 1950
// and RFC 1951.
func isZlib(p []byte) bool {
	if len(p) < 8 || (uint(p[0])<<8|uint(p[1]))%31 != 0 || p[1]&0x20 != 0 {
		return false
	}
	switch p[2] >> 1 & 3 {
	case 0:
		return p[3] == ^p[5] && p[4] == ^p[6]
	case 1:
		// Formulas may also begin with "x^".
		return p[1] != 0x5e || p[len(p)-1] >= 0x80
	case 2:
		return p[2]>>3 <= 29 && p[3]&0x1f <= 29
	}
	return false
}

// isPickle reports whether p looks like a Python pickle. It checks the version, the first opcode, and the stop
// opcode at the end.
func isPickle(p []byte) bool {
	if len(p) < 4 || p[len(p)-1] != '.' {
		return false
	}
	switch p[1] {
	case 2, 3:
		return strings.IndexByte("}](cKXNGJUM", p[2]) >= 0
	// Since version 4 a pickle has frames.
	case 4, 5:
		return len(p) > 11 && p[2] == 0x95 && binary.LittleEndian.Uint64(p[3:]) <= uint64(len(p)-11)
	}
	return false
}

// isExecutable reports whether p is a Windows executable: it has a PE header at the offset that its DOS header
// contains.
func isExecutable(p []byte) bool {
	if len(p) < 0x40 {
		return false
	}
	at := int64(binary.LittleEndian.Uint32(p[0x3c:]))
	return at+4 <= int64(len(p)) && string(p[at:at+4]) == "PE\x00\x00" || at < 1<<12 && at >= 0x40 && at+4 > int64(len(p))
}
