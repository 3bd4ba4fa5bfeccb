package value

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Form is the format of a text, such as a UUID or a JWT.
//
// Shape: Name is "uuid", "jwt", "json", "url", "data-url", "path", "semver", "hex", "base64", "date",
// "email", "ip", "pem" or "number". Note adds what is not obvious: the version and time of a UUID, the
// algorithm and expiry of a JWT, the number of bytes that hex digits encode. It includes only the times
// of a JWT's claims, because others may be secret.
type Form struct {
	// Name is the name of the format, and Note a remark for people, or "".
	Name, Note string
}

const (
	// maxFormLen is the maximum size in bytes of a text that is examined, except JSON.
	maxFormLen = 64 << 10

	// leastHex is the minimum number of hex digits that count as hex. Fewer may be a word or a number.
	leastHex = 16

	// leastB64 is the minimum number of characters that count as base64.
	leastB64 = 20
)

// FormOf detects the format of a text. ok is false for plain text.
//
// Limits: text of up to 64 KiB, and JSON of up to 1 MiB.
func FormOf(b []byte) (Form, bool) {
	if len(b) < 3 || len(b) > 1<<20 {
		return Form{}, false
	}
	switch c := b[0]; {
	case c == '{' || c == '[':
		if last := b[len(b)-1]; (last == '}' || last == ']' || last == '\n') && json.Valid(b) {
			return Form{Name: "json"}, true
		}
		return Form{}, false
	case len(b) > maxFormLen:
		return Form{}, false
	case c == '-' && bytes.HasPrefix(b, []byte("-----BEGIN ")):
		return pem(b)
	case bytes.HasPrefix(b, []byte("data:")):
		return dataURL(b)
	}

	for _, try := range possibleForms(b) {
		if f, ok := try(b); ok {
			return f, true
		}
	}
	return Form{}, false
}

// The functions that detect formats, from the most specific format to the least: a decimal number may be valid hex
// and base64, too. textForms are for text without the characters of dateOnly, which only dateForms contain. Those in
// signlessForms need none of the characters of formSign, but a digit or padding.
var (
	dateForms     = []func([]byte) (Form, bool){httpDate}
	textForms     = []func([]byte) (Form, bool){uuid, date, semver, numeral, jwt, absoluteURL, email, path, hexDigits, base64Text}
	signlessForms = []func([]byte) (Form, bool){numeral, hexDigits, base64Text}
)

// possibleForms returns the functions for the formats that the characters of a text allow; none for most words.
func possibleForms(b []byte) []func([]byte) (Form, bool) {
	var chars formChars
	for _, c := range b {
		chars |= formCharsOf[c]
	}
	switch {
	case chars&dateOnly != 0:
		return dateForms
	case chars&formSign != 0:
		return textForms
	case chars&formDigit != 0 || b[len(b)-1] == '=':
		return signlessForms
	}
	return nil
}

// formChars are the kinds of characters of a text that determine which formats it may have.
type formChars uint8

const (
	// dateOnly are the characters that no format but a date contains.
	dateOnly formChars = 1 << iota

	// formSign are the characters of which every format but numbers, hex and base64 has one.
	formSign

	// formDigit are the digits.
	formDigit
)

// formCharsOf has the kind of each character.
var formCharsOf = func() (t [256]formChars) {
	for kind, chars := range map[formChars]string{dateOnly: " \t\r\n<>\"|^`", formSign: "-.:/@", formDigit: "0123456789"} {
		for i := range len(chars) {
			t[chars[i]] = kind
		}
	}
	return t
}()

// pem detects text in PEM format. The note is its label, such as CERTIFICATE.
func pem(b []byte) (Form, bool) {
	what, _, ok := bytes.Cut(b[len("-----BEGIN "):], []byte("-----"))
	if !ok || len(what) > 40 {
		return Form{}, false
	}
	return Form{"pem", strings.ToLower(string(what))}, true
}

// dataURL detects a data URL (RFC 2397). The note is its media type.
func dataURL(b []byte) (Form, bool) {
	head, _, ok := bytes.Cut(b[len("data:"):], []byte(","))
	if !ok || len(head) > 100 || bytes.ContainsAny(head, " \n\"") {
		return Form{}, false
	}
	return Form{"data-url", string(head)}, true
}

// uuid detects UUIDs with dashes. Without dashes they count as hex.
func uuid(b []byte) (Form, bool) {
	if len(b) != 36 || !isUUID(b) {
		return Form{}, false
	}
	var raw [16]byte
	if _, err := hex.Decode(raw[:], slices.Concat(b[:8], b[9:13], b[14:18], b[19:23], b[24:])); err != nil {
		return Form{}, false
	}

	// Versions 1 and 7 contain a time (RFC 9562).
	version := raw[6] >> 4
	switch {
	case raw == [16]byte{}:
		return Form{"uuid", "nil"}, true
	case version == 7:
		ms := int64(binary.BigEndian.Uint64(raw[:8]) >> 16)
		return Form{"uuid", "version 7, " + FormatTime(time.UnixMilli(ms))}, true
	case version == 1:
		ticks := int64(binary.BigEndian.Uint32(raw[:4])) | int64(binary.BigEndian.Uint16(raw[4:6]))<<32 | int64(binary.BigEndian.Uint16(raw[6:8])&0xfff)<<48
		// The epoch of UUIDs is 1582-10-15, and the unit is 100 ns.
		const toUnix = 122_192_928_000_000_000
		return Form{"uuid", "version 1, " + FormatTime(time.Unix((ticks-toUnix)/1e7, (ticks-toUnix)%1e7*100))}, true
	case version >= 1 && version <= 8 && raw[8]>>6 == 0b10:
		return Form{"uuid", fmt.Sprintf("version %d", version)}, true
	}
	return Form{Name: "uuid"}, true
}

// date detects dates and times of RFC 3339 and ISO 8601.
func date(b []byte) (Form, bool) {
	if len(b) < 10 || len(b) > 40 || b[4] != '-' || b[7] != '-' || !isDigit(b[0]) {
		return Form{}, false
	}
	s := string(b)
	if _, err := time.Parse("2006-01-02", s); err == nil {
		return Form{Name: "date"}, true
	}
	for _, layout := range [...]string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05.999999999Z0700"} {
		if t, err := time.Parse(layout, s); err == nil {
			f := Form{Name: "date"}
			if !strings.HasSuffix(s, "Z") {
				if f.Note = FormatTime(t); !strings.Contains(layout, "Z") {
					f.Note = "no time zone"
				}
			}
			return f, true
		}
	}
	return Form{}, false
}

// httpDate detects dates that contain spaces, as in HTTP headers.
func httpDate(b []byte) (Form, bool) {
	if len(b) < 16 || len(b) > 40 {
		return Form{}, false
	}
	for _, layout := range [...]string{time.RFC1123, time.RFC1123Z, time.RFC850, time.ANSIC, time.UnixDate, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999", "2006-01-02 15:04"} {
		if _, err := time.Parse(layout, string(b)); err == nil {
			return Form{Name: "date"}, true
		}
	}
	return Form{}, false
}

// semver detects three numbers, optionally after a v, with an optional suffix as in semantic versions. It detects
// IPv4 addresses, too.
func semver(b []byte) (Form, bool) {
	if len(b) > 80 || !isDigit(b[0]) && (b[0] != 'v' || !isDigit(b[1])) || bytes.IndexByte(b, '.') < 0 {
		return Form{}, false
	}
	s := strings.TrimPrefix(string(b), "v")
	core := s
	if at := strings.IndexAny(s, "-+"); at >= 0 {
		core = s[:at]
		if at == len(s)-1 || !isSemverSuffix(s[at+1:]) {
			return Form{}, false
		}
	}

	// Leading zeros are not allowed.
	parts := strings.Split(core, ".")
	for _, p := range parts {
		if p == "" || len(p) > 9 || len(p) > 1 && p[0] == '0' || strings.Trim(p, "0123456789") != "" {
			return Form{}, false
		}
	}
	if len(parts) == 4 && core == string(b) {
		return ipv4(parts)
	}
	return Form{Name: "semver"}, len(parts) == 3
}

// isSemverSuffix reports whether s may follow the numbers and a hyphen or plus sign.
func isSemverSuffix(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isAlnum(c) && c != '.' && c != '+' && c != '-' {
			return false
		}
	}
	return true
}

// ipv4 detects an IPv4 address: each of its four parts must be at most 255.
func ipv4(parts []string) (Form, bool) {
	for _, p := range parts {
		if len(p) > 3 || len(p) == 3 && p > "255" {
			return Form{}, false
		}
	}
	return Form{Name: "ip"}, true
}

// numeral detects an integer. JSON, for example, writes 64-bit numbers as strings.
func numeral(b []byte) (Form, bool) {
	digits := bytes.TrimPrefix(b, []byte("-"))
	if len(digits) < 1 || len(digits) > 20 {
		return Form{}, false
	}
	v := uint64(0)
	for _, c := range digits {
		if !isDigit(c) {
			return Form{}, false
		}
		v = v*10 + uint64(c-'0')
	}
	if unit := TimeUnit(v); unit != "" && len(digits) == len(b) && len(digits) < 20 {
		return Form{"number", TimeNote(v, unit)}, true
	}
	return Form{Name: "number"}, true
}

// jwt detects a JSON Web Token (RFC 7519). The note has the algorithm and the times only.
func jwt(b []byte) (Form, bool) {
	if !bytes.HasPrefix(b, []byte("eyJ")) {
		return Form{}, false
	}
	parts := bytes.Split(b, []byte("."))
	if len(parts) != 3 && len(parts) != 5 {
		return Form{}, false
	}
	var head struct {
		Alg string `json:"alg"`
		Enc string `json:"enc"`
	}
	if !fromSegment(parts[0], &head) || head.Alg == "" {
		return Form{}, false
	}

	// The algorithm is text of the sender, so print it only if it resembles one.
	alg := "unknown algorithm"
	if len(head.Alg) <= 20 && strings.Trim(strings.ToLower(head.Alg), "abcdefghijklmnopqrstuvwxyz0123456789-+") == "" {
		alg = head.Alg
	}
	notes := []string{alg}
	if head.Enc != "" {
		notes = append(notes, "encrypted")
	}

	// The second part of an unencrypted token are the claims.
	var claims struct {
		Expires float64 `json:"exp"`
		Issued  float64 `json:"iat"`
	}
	if len(parts) == 3 && fromSegment(parts[1], &claims) {
		for _, t := range [...]struct {
			word string
			at   float64
		}{{"issued", claims.Issued}, {"expires", claims.Expires}} {
			// 1e11 s is the year 5138: larger values are not seconds.
			if t.at > 0 && t.at < 1e11 {
				notes = append(notes, t.word+" "+FormatTime(time.Unix(int64(t.at), 0)))
			}
		}
	}
	return Form{"jwt", strings.Join(notes, ", ")}, true
}

// fromSegment decodes a part of a JWT, which is JSON in base64url, into v.
func fromSegment(b []byte, v any) bool {
	raw := make([]byte, base64.RawURLEncoding.DecodedLen(len(b)))
	n, err := base64.RawURLEncoding.Decode(raw, b)
	return err == nil && json.Unmarshal(raw[:n], v) == nil
}

// absoluteURL detects a URL that begins with a scheme and "://".
func absoluteURL(b []byte) (Form, bool) {
	at := bytes.Index(b, []byte("://"))
	if at < 2 || at > 20 {
		return Form{}, false
	}
	u, err := url.Parse(string(b))
	if err != nil || u.Host == "" && u.Path == "" {
		return Form{}, false
	}
	return Form{Name: "url"}, true
}

// email detects an e-mail address by a conservative subset of its syntax.
func email(b []byte) (Form, bool) {
	name, host, ok := bytes.Cut(b, []byte("@"))
	dot := bytes.LastIndexByte(host, '.')
	if !ok || len(name) == 0 || dot < 1 || dot > len(host)-3 || len(b) > 254 {
		return Form{}, false
	}
	for _, c := range host {
		if !isAlnum(c) && c != '.' && c != '-' {
			return Form{}, false
		}
	}
	for _, c := range name {
		if !isAlnum(c) && !bytes.ContainsRune([]byte("._%+-"), rune(c)) {
			return Form{}, false
		}
	}
	return Form{Name: "email"}, true
}

// path detects absolute file paths, and relative ones that end in a file extension.
func path(b []byte) (Form, bool) {
	if len(b) > 1024 || bytes.Contains(b, []byte("//")) {
		return Form{}, false
	}
	switch {
	case b[0] == '/', bytes.HasPrefix(b, []byte("~/")), bytes.HasPrefix(b, []byte("./")), bytes.HasPrefix(b, []byte("../")):
		return Form{Name: "path"}, isAlnum(b[len(b)-1]) || b[len(b)-1] == '/' || bytes.IndexByte(b[1:], '/') >= 0
	case len(b) > 3 && b[1] == ':' && (b[2] == '\\' || b[2] == '/') && isAlnum(b[0]):
		return Form{Name: "path"}, true
	}
	at := bytes.LastIndexByte(b, '/')
	if at <= 0 {
		return Form{}, false
	}
	dot := bytes.LastIndexByte(b[at:], '.')
	if dot <= 0 || len(b)-at-dot > 8 || len(b)-at-dot < 2 {
		return Form{}, false
	}
	for _, c := range b[at+dot+1:] {
		if !isAlnum(c) {
			return Form{}, false
		}
	}
	return Form{Name: "path"}, true
}

// hexDigits detects hex digits with letters in one case. Digits alone count as a number, and letters alone as a
// word.
func hexDigits(b []byte) (Form, bool) {
	if len(b) < leastHex || len(b)%2 != 0 {
		return Form{}, false
	}
	lower, upper, digits := false, false, false
	for _, c := range b {
		switch {
		case isDigit(c):
			digits = true
		case c >= 'a' && c <= 'f':
			lower = true
		case c >= 'A' && c <= 'F':
			upper = true
		default:
			return Form{}, false
		}
	}
	if lower && upper || !digits || !lower && !upper {
		return Form{}, false
	}
	return Form{"hex", strconv.Itoa(len(b)/2) + " bytes"}, true
}

// base64Text detects base64 that cannot be confused with words or names: it has letters of both cases with
// digits, or padding.
func base64Text(b []byte) (Form, bool) {
	if len(b) < leastB64 {
		return Form{}, false
	}
	body := bytes.TrimRight(b, "=")
	padding := len(b) - len(body)
	if padding > 2 || padding > 0 && len(b)%4 != 0 || len(body)%4 == 1 {
		return Form{}, false
	}
	var n [notBase64]int
	for _, c := range body {
		class := base64Class[c]
		if class == notBase64 {
			return Form{}, false
		}
		n[class]++
	}

	// Only one of the alphabets may occur, and both cases must.
	if n[base64Std] > 0 && n[base64URL] > 0 || n[base64Lower] == 0 || n[base64Upper] == 0 ||
		padding == 0 && (n[base64Digit] == 0 || len(b)%4 != 0) {
		return Form{}, false
	}
	// Half of the characters of random base64 are capitals or digits. Names have far fewer.
	if 4*(n[base64Upper]+n[base64Digit]) < len(body) || n[base64URL]+n[base64Std] > len(body)/6 {
		return Form{}, false
	}
	return Form{"base64", strconv.Itoa(len(body)*6/8) + " bytes"}, true
}

// The classes of base64's characters.
const (
	base64Lower = iota
	base64Upper
	base64Digit

	// base64Std has the characters of the standard alphabet only.
	base64Std

	// base64URL has the characters of the URL alphabet only.
	base64URL
	notBase64
)

// base64Class is the class of each character.
var base64Class = func() (t [256]uint8) {
	for c := range t {
		t[c] = notBase64
	}
	for class, chars := range [...]string{
		base64Lower: "abcdefghijklmnopqrstuvwxyz",
		base64Upper: "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
		base64Digit: "0123456789",
		base64Std:   "+/",
		base64URL:   "-_",
	} {
		for i := range len(chars) {
			t[chars[i]] = uint8(class)
		}
	}
	return t
}()
