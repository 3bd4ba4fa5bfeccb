// Package spelling returns the encodings in which a secret may occur in traffic: percent-encoding, escapes, hex,
// base64, base32 and UTF-16. Package redact searches for all of them once it has learned the secret.
package spelling

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"
	"unicode/utf16"
)

// Of returns secret and all other spellings in which it may occur: as escaped in URLs, JSON and XML, in base64,
// base32 and hex, and in UTF-16.
func Of(secret string) []string {
	query, path := url.QueryEscape(secret), url.PathEscape(secret)
	l := []string{secret, query, path, lowerEscapes(query), lowerEscapes(path), url.QueryEscape(query), url.QueryEscape(path)}
	l = append(l, hex.EncodeToString([]byte(secret)), strings.ToUpper(hex.EncodeToString([]byte(secret))))
	for _, e := range []*strings.Replacer{escapesJSON, escapesSlash, escapesHTML, escapesHTMLUpper, escapesXML, escapesXMLDecimal} {
		l = append(l, e.Replace(secret))
	}
	if len(secret) <= maxRespelt {
		l = append(l, rareSpellings(secret)...)
	}
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for _, s := range base64Spellings(enc, secret) {
			l = append(l, s)
			if len(secret) <= maxRespelt {
				l = append(l, base64Spellings(base64.RawStdEncoding, s)...)
			}
		}
	}
	return append(l, base32Spellings(secret)...)
}

// rareSpellings returns the spellings that write each byte or character of secret by its number, such as \x41.
func rareSpellings(secret string) []string {
	var l []string
	for _, f := range []struct {
		before, between string
		upper           bool
	}{
		{"", ":", false},
		{"", ":", true},
		{"", " ", false},
		{"", " ", true},
		{"", "-", false},
		{"", "-", true},
		{`\x`, "", false},
		{"0x", ", ", false},
		{"0x", ",", false},
		{"%", "", true},
		{"%", "", false},
	} {
		l = append(l, eachByte(secret, f.before, f.between, f.upper))
	}

	// UTF-16 in both byte orders, and as \u escapes.
	var little, big, escaped []byte
	for _, u := range utf16.Encode([]rune(secret)) {
		little = append(little, byte(u), byte(u>>8))
		big = append(big, byte(u>>8), byte(u))
		escaped = hex.AppendEncode(append(escaped, `\u`...), []byte{byte(u >> 8), byte(u)})
	}
	return append(l, string(little), string(big), string(escaped))
}

// maxRespelt is the greatest length in bytes of a secret whose rare spellings are searched for.
const maxRespelt = 512

// Replacers that escape a text for JSON, HTML or XML, in the ways in which different encoders do it.
var (
	escapesJSON       = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`)
	escapesSlash      = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "/", `\/`, "\n", `\n`)
	escapesHTML       = strings.NewReplacer(`\`, `\\`, `"`, `\u0022`, "&", `\u0026`, "<", `\u003c`, ">", `\u003e`, "'", `\u0027`, "+", `\u002b`, "=", `\u003d`)
	escapesHTMLUpper  = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "&", `\u0026`, "<", `\u003C`, ">", `\u003E`, "'", `\u0027`, "+", `\u002B`, "=", `\u003D`)
	escapesXML        = strings.NewReplacer("&", "&amp;", `"`, "&quot;", "'", "&apos;", "<", "&lt;", ">", "&gt;")
	escapesXMLDecimal = strings.NewReplacer("&", "&amp;", `"`, "&#34;", "'", "&#39;", "<", "&lt;", ">", "&gt;")
)

// lowerEscapes returns s with the hex digits of its percent-escapes in lower case.
func lowerEscapes(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], strings.ToLower(s[i+1:i+3]))
		}
	}
	return string(b)
}

// eachByte returns the bytes of s in hex, each after the text before, with the text between them.
func eachByte(s, before, between string, upper bool) string {
	alphabet := "0123456789abcdef"
	if upper {
		alphabet = "0123456789ABCDEF"
	}
	out := make([]byte, 0, len(s)*(2+len(before)+len(between)))
	for i := range len(s) {
		if i > 0 {
			out = append(out, between...)
		}
		out = append(append(out, before...), alphabet[s[i]>>4], alphabet[s[i]&15])
	}
	return string(out)
}

// base64Spellings returns how secret looks within the base64 of a longer text. That depends on the offset
// modulo three at which the secret begins in the text; only characters that consist entirely of the secret's
// bits are included.
func base64Spellings(enc *base64.Encoding, secret string) []string {
	var l []string
	for offset := range 3 {
		s := enc.EncodeToString([]byte(strings.Repeat("\x00", offset) + secret))
		from := []int{0, 2, 3}[offset]
		to := (offset + len(secret)) * 8 / 6
		l = append(l, s[from:to])
	}
	return l
}

// base32Spellings returns how secret is spelt in the base32 of a longer text, for each offset modulo five.
func base32Spellings(secret string) []string {
	var l []string
	for offset := range 5 {
		s := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString([]byte(strings.Repeat("\x00", offset) + secret))
		l = append(l, s[(offset*8+4)/5:(offset+len(secret))*8/5])
	}
	return l
}
