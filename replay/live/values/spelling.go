package values

import (
	"crypto/md5"  //nolint:gosec // identifiers of clients
	"crypto/sha1" //nolint:gosec // identifiers of clients
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"unwire/decode/transcript/ident"
)

// A Spelling is an encoding in which a client may send back an identifier that a server issued, such as
// hexadecimal.
type Spelling string

// The spellings. Those of a digest encode the SHA-256, MD5 or SHA-1 of the value.
const (
	AsIs        Spelling = ""
	asHex       Spelling = "hex"
	asHexUpper  Spelling = "HEX"
	asBase64    Spelling = "base64"
	asBase64URL Spelling = "base64url"
	asRawBase64 Spelling = "base64 without padding"
	asRawURL    Spelling = "base64url without padding"
	// asBytes decodes a text that is hexadecimal or a UUID.
	asBytes    Spelling = "bytes"
	asUpper    Spelling = "upper case"
	asLower    Spelling = "lower case"
	asUndashed Spelling = "without dashes"
	// asUndashedUpper and asDashed are the other forms of a UUID.
	asUndashedUpper Spelling = "upper case without dashes"
	asDashed        Spelling = "uuid"
	// asEscaped escapes special characters as in a URL.
	asEscaped Spelling = "percent-encoded"
	// asHexNumber is a decimal number in hexadecimal.
	asHexNumber Spelling = "hexadecimal number"
	// asFirstHalf and asSecondHalf are the halves of a text, asHighBits and asLowBits those of 16 bytes as
	// decimal numbers.
	asFirstHalf  Spelling = "first half"
	asSecondHalf Spelling = "second half"
	asHighBits   Spelling = "high bits"
	asLowBits    Spelling = "low bits"
	// asBigEndian are the eight bytes of a number.
	asBigEndian    Spelling = "big-endian bytes"
	asLittleEndian Spelling = "little-endian bytes"
	asHexNumber16  Spelling = "hexadecimal number of 16 digits"
	// asSigned is a number in two's complement as a negative one, asZigzag a number of type sint64, and asDouble
	// the bits of a double that is a whole number.
	asSigned Spelling = "signed number"
	asZigzag Spelling = "sint64"
	asDouble Spelling = "double"
	// asNext is the number after the server's, as in an acknowledgement.
	asNext Spelling = "next number"
	// asFirst8 and asFirst12 are the first digits of a hexadecimal identifier, as in short hashes.
	asFirst8  Spelling = "first 8 characters"
	asFirst12 Spelling = "first 12 characters"
	// asBase32Bytes decodes base32.
	asBase32Bytes Spelling = "bytes of base32"
	asDigest      Spelling = "sha256"
	asHexDigest   Spelling = "sha256 hex"
	asTextDigest  Spelling = "sha256 base64"
	asMD5         Spelling = "md5 hex"
	asSHA1        Spelling = "sha1 hex"
)

// Spellings are all spellings. Of two that are equal for some values, the more common one comes first.
var Spellings = [...]Spelling{
	AsIs, asHex, asHexUpper, asBase64, asBase64URL, asRawURL, asRawBase64, asBytes, asUpper, asLower, asUndashed, asUndashedUpper,
	asDashed, asEscaped, asHexNumber16, asHexNumber, asFirstHalf, asSecondHalf, asHighBits, asLowBits, asBigEndian, asLittleEndian,
	asSigned, asZigzag, asDouble, asFirst8, asFirst12, asBase32Bytes, asDigest, asHexDigest, asTextDigest, asMD5, asSHA1, asNext,
}

// Of returns the identifier v in the encoding s; ok is false if v cannot be encoded so, or if the
// result equals v.
func (s Spelling) Of(v string) (out string, ok bool) {
	switch s {
	case AsIs:
		return v, true
	case asHex:
		return hex.EncodeToString([]byte(v)), true
	case asHexUpper:
		return strings.ToUpper(hex.EncodeToString([]byte(v))), true
	case asBase64:
		return base64.StdEncoding.EncodeToString([]byte(v)), true
	case asBase64URL:
		return base64.URLEncoding.EncodeToString([]byte(v)), true
	case asRawBase64:
		return base64.RawStdEncoding.EncodeToString([]byte(v)), true
	case asRawURL:
		return base64.RawURLEncoding.EncodeToString([]byte(v)), true
	case asBytes:
		b, err := hex.DecodeString(strings.ReplaceAll(v, "-", ""))
		return string(b), err == nil && len(b) >= ShortText
	}
	if s.IsDigest() {
		return s.ofDigest(v), true
	}
	return s.ofForm(v)
}

// ofForm is Of for the forms in which identifiers, numbers and their parts are written.
func (s Spelling) ofForm(v string) (out string, ok bool) {
	switch s {
	// The second result is false where the spelling does not differ or does not apply.
	case asUpper:
		return strings.ToUpper(v), strings.ToUpper(v) != v && utf8.ValidString(v)
	case asLower:
		return strings.ToLower(v), strings.ToLower(v) != v && utf8.ValidString(v)
	case asUndashed:
		return strings.ReplaceAll(v, "-", ""), ClassOf(v) == ident.UUID
	case asUndashedUpper:
		return strings.ToUpper(strings.ReplaceAll(v, "-", "")), ClassOf(v) == ident.UUID
	case asDashed:
		return dashed(v)
	case asEscaped:
		return url.QueryEscape(v), url.QueryEscape(v) != v && IsPrintable([]byte(v))
	case asHexNumber16, asHexNumber, asBigEndian, asLittleEndian, asSigned, asZigzag, asDouble, asNext:
		return s.ofNumber(v)
	case asFirst8, asFirst12:
		return s.ofStart(v)
	case asBase32Bytes:
		b, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.TrimRight(v, "="))
		return string(b), err == nil && len(b) >= ShortText
	case asFirstHalf:
		return v[:len(v)/2], len(v)%2 == 0 && utf8.ValidString(v)
	case asSecondHalf:
		return v[len(v)/2:], len(v)%2 == 0 && utf8.ValidString(v)
	case asHighBits, asLowBits:
		return s.ofBits(v)
	}
	return "", false
}

// ofDigest is Of for digests.
func (s Spelling) ofDigest(v string) string {
	sum := sha256.Sum256([]byte(v))
	switch s {
	case asHexDigest:
		return hex.EncodeToString(sum[:])
	case asTextDigest:
		return base64.StdEncoding.EncodeToString(sum[:])
	case asMD5:
		return fmt.Sprintf("%x", md5.Sum([]byte(v)))
	case asSHA1:
		return fmt.Sprintf("%x", sha1.Sum([]byte(v)))
	}
	return string(sum[:])
}

// ofStart returns the first characters of a hexadecimal identifier.
func (s Spelling) ofStart(v string) (string, bool) {
	n := 8
	if s == asFirst12 {
		n = 12
	}
	if c := ClassOf(v); len(v) < 2*n || c != ident.UUID && c != ident.Hex {
		return "", false
	}
	return v[:n], true
}

// dashed returns a binary UUID, or one without dashes, in its usual form.
func dashed(v string) (string, bool) {
	const size = 16
	if len(v) == size {
		v = hex.EncodeToString([]byte(v))
	}
	if b, err := hex.DecodeString(v); err != nil || len(b) != size {
		return "", false
	}
	return v[:8] + "-" + v[8:12] + "-" + v[12:16] + "-" + v[16:20] + "-" + v[20:], true
}

// ofNumber returns the number that v has in decimal digits in the encoding s.
func (s Spelling) ofNumber(v string) (string, bool) {
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil || !IsDigits(v) {
		return "", false
	}
	switch s {
	case asHexNumber16:
		return fmt.Sprintf("%016x", n), true
	case asHexNumber:
		return strconv.FormatUint(n, 16), true
	case asBigEndian:
		return string(binary.BigEndian.AppendUint64(nil, n)), true
	case asSigned, asZigzag, asDouble, asNext:
		// Shorter results occur by chance.
		out, ok := s.ofBitsOf(n)
		return out, ok && len(out) >= ShortText
	}
	return string(binary.LittleEndian.AppendUint64(nil, n)), true
}

// ofBitsOf returns the decimal number that s makes of the bits of n.
func (s Spelling) ofBitsOf(n uint64) (string, bool) {
	switch s {
	case asSigned:
		return strconv.FormatInt(int64(n), 10), int64(n) < 0
	case asZigzag:
		return strconv.FormatInt(int64(n>>1)^-int64(n&1), 10), true
	case asDouble:
		return ofDouble(math.Float64frombits(n))
	}
	return strconv.FormatUint(n+1, 10), n+1 > n
}

// ofDouble returns a double in decimal digits if it is a whole number that a double has exactly.
func ofDouble(d float64) (string, bool) {
	const most = 1 << 53
	if d != math.Trunc(d) || math.Abs(d) < smallNumber || math.Abs(d) > most {
		return "", false
	}
	return strconv.FormatInt(int64(d), 10), true
}

// ofBits returns one half of the 16 bytes of a UUID as a number.
func (s Spelling) ofBits(v string) (string, bool) {
	const half = 8
	b := []byte(v)
	if len(b) != 2*half {
		b, _ = hex.DecodeString(strings.ReplaceAll(v, "-", ""))
	}
	if len(b) != 2*half {
		return "", false
	}
	if s == asLowBits {
		b = b[half:]
	}
	return strconv.FormatUint(binary.BigEndian.Uint64(b), 10), true
}

// Applies reports whether a client may send the part p in the encoding s: only identifiers are encoded
// in another way, and only numbers as hexadecimal numbers.
func (s Spelling) Applies(p *Part) bool {
	switch s {
	case AsIs:
		return true
	case asHexNumber, asHexNumber16, asBigEndian, asLittleEndian, asSigned, asZigzag, asDouble, asNext:
		return p.Number
	case asBase32Bytes:
		return !p.Number
	}
	return !IsDigits(p.Value) && (s.IsDigest() || p.ID || p.layer && !IsPrintable([]byte(p.Value)))
}

// IsDigest reports whether the encoding is that of the identifier's hash, not of the identifier
// itself.
func (s Spelling) IsDigest() bool {
	switch s {
	case asDigest, asHexDigest, asTextDigest, asMD5, asSHA1:
		return true
	}
	return false
}

// IsDerived reports whether the encoding gives another value, which the server may issue by itself later.
func (s Spelling) IsDerived() bool { return s == asNext }

// IsPart reports whether the encoding contains only one half of the identifier.
func (s Spelling) IsPart() bool {
	return s == asFirstHalf || s == asSecondHalf || s == asHighBits || s == asLowBits
}

// longDigits is a number of decimal digits that counters do not reach, so that longer numbers may be
// identifiers. One in 2,000 hexadecimal ids of 8 bytes consists of decimal digits only.
const longDigits = 15

// ClassOf returns the class of an identifier, such as UUID; "" if s is not an identifier.
func ClassOf(s string) ident.Class {
	if c := ident.Of(s); c != "" {
		return c
	}
	rest := s[strings.LastIndexAny(s, "_-")+1:]
	switch {
	case strings.HasSuffix(s, "=") && isBase64ID(s):
		return ident.Token
	case len(rest) < longDigits || !IsDigits(rest):
		return ""
	case rest == s:
		return ident.Hex
	}
	return ident.ID
}

// isBase64ID reports whether s is base64 of at least eight bytes that are not text.
func isBase64ID(s string) bool {
	b, _ := FromBase64(s)
	return len(b) >= ShortText && !IsPrintable(b)
}

// IsBinaryID reports whether bytes may be a binary identifier: they have a usual length of one, and are
// not text.
func IsBinaryID(b []byte) bool {
	switch len(b) {
	case 12, 16, 20, 32, 64:
		return !utf8.Valid(b) || ident.IsBytes(b)
	}
	return false
}

// Classes returns a text with each identifier in it replaced by the name of its class.
func Classes(b []byte) string {
	if IsBinaryID(b) {
		return fmt.Sprintf("<%d bytes>", len(b))
	}
	s := string(b)
	for w := range wordsOf(s) {
		c := ClassOf(w)
		if n, err := strconv.ParseUint(w, 10, 64); err == nil && ident.IsTime(n) {
			c = ident.Time
		}
		if c != "" {
			s = strings.ReplaceAll(s, w, "<"+string(c)+">")
		}
	}
	return s
}

// IsPrintable reports whether bytes are text without control characters.
func IsPrintable(b []byte) bool {
	if !utf8.Valid(b) {
		return false
	}
	for _, c := range b {
		if c < 0x20 && c != '\n' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}
