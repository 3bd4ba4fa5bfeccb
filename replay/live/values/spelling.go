package values

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"unwire/decode/transcript/ident"
)

// A Spelling is an encoding in which a client may send back an identifier that a server issued, such as
// hexadecimal.
type Spelling string

// The spellings. Those of a digest encode the SHA-256 of the value.
const (
	AsIs        Spelling = ""
	asHex       Spelling = "hex"
	asHexUpper  Spelling = "HEX"
	asBase64    Spelling = "base64"
	asBase64URL Spelling = "base64url"
	asRawBase64 Spelling = "base64 without padding"
	asRawURL    Spelling = "base64url without padding"
	// asBytes decodes a text that is hexadecimal or a UUID.
	asBytes      Spelling = "bytes"
	asUpper      Spelling = "upper case"
	asUndashed   Spelling = "without dashes"
	asDigest     Spelling = "sha256"
	asHexDigest  Spelling = "sha256 hex"
	asTextDigest Spelling = "sha256 base64"
)

// Spellings are all spellings.
var Spellings = [...]Spelling{
	AsIs, asHex, asHexUpper, asBase64, asBase64URL, asRawBase64, asRawURL, asBytes, asUpper, asUndashed, asDigest, asHexDigest, asTextDigest,
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
	// The second result is false where the spelling does not differ or does not apply.
	case asUpper:
		return strings.ToUpper(v), strings.ToUpper(v) != v && utf8.ValidString(v)
	case asUndashed:
		return strings.ReplaceAll(v, "-", ""), ClassOf(v) == ident.UUID
	}

	// The remaining spellings are digests.
	sum := sha256.Sum256([]byte(v))
	switch s {
	case asHexDigest:
		return hex.EncodeToString(sum[:]), true
	case asTextDigest:
		return base64.StdEncoding.EncodeToString(sum[:]), true
	}
	return string(sum[:]), true
}

// IsDigest reports whether the encoding is that of the identifier's SHA-256, not of the identifier
// itself.
func (s Spelling) IsDigest() bool { return s == asDigest || s == asHexDigest || s == asTextDigest }

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
	case len(rest) < longDigits || !IsDigits(rest):
		return ""
	case rest == s:
		return ident.Hex
	}
	return ident.ID
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
