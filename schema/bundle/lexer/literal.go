package lexer

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Number returns the value of a numeric literal, given its source text.
func Number(text string) float64 {
	text = strings.TrimSuffix(strings.ReplaceAll(text, "_", ""), "n")
	// A leading zero is a prefix such as 0x, or an octal number.
	if len(text) > 1 && text[0] == '0' && text[1] != '.' {
		if v, err := strconv.ParseUint(text, 0, 64); err == nil {
			return float64(v)
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(v, 0) {
		return math.NaN()
	}
	return v
}

// Unquote returns the string value of a string literal or of a piece of a template literal, given its source
// text with quotes.
func Unquote(text string) string {
	if len(text) > 0 {
		text = text[1:]
	}

	// A template literal ends in a quote or in the start of an expression.
	switch {
	case strings.HasSuffix(text, "${"):
		text = text[:len(text)-2]
	case len(text) > 0:
		text = text[:len(text)-1]
	}
	if strings.IndexByte(text, '\\') < 0 {
		return text
	}

	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			out = append(out, text[i])
			continue
		}
		i++
		// The escape sequences of ECMAScript string literals.
		switch c := text[i]; c {
		case 'n', 't', 'r', 'b', 'f', 'v':
			out = append(out, "\n\t\r\b\f\v"[strings.IndexByte("ntrbfv", c)])
		// A backslash before a line break continues the line, so both are dropped.
		case '\r', '\n':
			if c == '\r' && i+1 < len(text) && text[i+1] == '\n' {
				i++
			}
		case 'x', 'u':
			r, n := escape(text[i:])
			out = utf8.AppendRune(out, r)
			i += n - 1
		case '0', '1', '2', '3', '4', '5', '6', '7':
			r, n := octal(text[i:])
			out = utf8.AppendRune(out, r)
			i += n - 1
		default:
			out = append(out, c)
		}
	}

	return string(out)
}

// octal returns the character that an octal escape (up to three digits) at the beginning of text stands for,
// and the number of digits.
func octal(text string) (rune, int) {
	n := 1
	for n < min(3, len(text)) && '0' <= text[n] && text[n] <= '7' {
		n++
	}
	v, _ := strconv.ParseUint(text[:n], 8, 16)
	return rune(v), n
}

// escape returns the character that a \x or \u escape stands for, and its length. text begins after the
// backslash, and the length excludes it.
func escape(text string) (rune, int) {
	hex, n := "", 0
	switch {
	case text[0] == 'x' && len(text) >= 3:
		hex, n = text[1:3], 3
	case strings.HasPrefix(text, "u{"):
		if end := strings.IndexByte(text, '}'); end > 0 {
			hex, n = text[2:end], end+1
		}
	case text[0] == 'u' && len(text) >= 5:
		hex, n = text[1:5], 5
	}
	v, err := strconv.ParseUint(hex, 16, 21)
	if err != nil {
		return rune(text[0]), 1
	}
	// Two escapes form a surrogate pair.
	if 0xd800 <= v && v < 0xdc00 && n == 5 && len(text) >= 11 && text[5] == '\\' && text[6] == 'u' {
		if low, err := strconv.ParseUint(text[7:11], 16, 16); err == nil && 0xdc00 <= low && low < 0xe000 {
			return rune((v-0xd800)<<10 + (low - 0xdc00) + 0x10000), 11
		}
	}
	return rune(v), n
}
