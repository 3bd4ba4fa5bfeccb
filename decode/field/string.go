package field

import "unicode/utf8"

// appendString appends s as a JSON string with short escapes.
func appendString(b []byte, s string) []byte { return appendEscaped(b, s, true) }

// appendEscaped appends s as a JSON string. It escapes only what JSON requires, invalid UTF-8, and U+2028 and
// U+2029, which older JavaScript does not allow in strings. If short is true, backspace and form feed become \b
// and \f, else \u0008 and \u000c.
func appendEscaped[T string | []byte](b []byte, s T, short bool) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')

	// s[from:i] needs no escapes and is copied in one go.
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := decodeRune(s, i)
			if r == utf8.RuneError && n == 1 || r == '\u2028' || r == '\u2029' {
				b = append(b, s[from:i]...)
				b = append(b, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
				from = i + n
			}
			i += n
			continue
		}

		// Printable ASCII without the characters that JSON reserves.
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[from:i]...)
		switch letter := escapeLetter(c, short); letter {
		case 0:
			b = append(b, `\u00`...)
			b = append(b, digits[c>>4], digits[c&15])
		default:
			b = append(b, '\\', letter)
		}
		i++
		from = i
	}
	return append(append(b, s[from:]...), '"')
}

// escapeLetter returns the letter that represents c after a backslash, or 0 if c needs a \u escape. short is as in
// appendEscaped.
func escapeLetter(c byte, short bool) byte {
	switch {
	case c == '"', c == '\\':
		return c
	case c == '\n':
		return 'n'
	case c == '\r':
		return 'r'
	case c == '\t':
		return 't'
	case c == '\b' && short:
		return 'b'
	case c == '\f' && short:
		return 'f'
	}
	return 0
}

// decodeRune decodes the rune at s[i]. The copy is necessary because T may be a string or bytes.
func decodeRune[T string | []byte](s T, i int) (rune, int) {
	var buf [utf8.UTFMax]byte
	n := copy(buf[:], s[i:min(i+utf8.UTFMax, len(s))])
	return utf8.DecodeRune(buf[:n])
}
