package text

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strconv"
)

var errNoDump = errors.New("no dump")

// undump reads what hexdump -C, xxd, od -tx1z and Wireshark print: lines of an
// offset, bytes in hex, and text beside them.
//
// Shape: the offsets prove that it is one: each has to be the number of bytes
// before it. A line that is * alone repeats the one before, up to the next offset.
func undump(in []byte) ([]byte, error) {
	var out, last []byte
	repeat := false
	lines := 0
	for len(in) > 0 {
		var line []byte
		line, in, _ = bytes.Cut(in, []byte("\n"))
		line = bytes.TrimRight(line, " \t\r")
		switch {
		case len(line) == 0:
			continue
		case string(line) == "*" && len(last) > 0:
			repeat = true
			continue
		}
		off, data, err := dumpLine(line)
		if err != nil {
			return nil, err
		}
		if repeat {
			if off < len(out) || (off-len(out))%len(last) != 0 || off > maxKept {
				return nil, errNoDump
			}
			out = append(out, bytes.Repeat(last, (off-len(out))/len(last))...)
			repeat = false
		}
		if off != len(out) || len(data) == 0 && len(bytes.TrimSpace(in)) > 0 {
			return nil, errNoDump
		}
		out = append(out, data...)
		last = data
		lines++
	}
	if lines == 0 || repeat {
		return nil, errNoDump
	}
	return out, nil
}

// dumpLine reads one line.
func dumpLine(line []byte) (off int, data []byte, err error) {
	n := 0
	for n < len(line) {
		if _, ok := hexDigit(line[n]); !ok {
			break
		}
		n++
	}
	v, err := strconv.ParseUint(string(line[:n]), 16, 40)
	if err != nil || n < 4 {
		return 0, nil, errNoDump
	}
	rest := line[n:]
	gap := 3 // spaces before the text beside the bytes
	if len(rest) > 0 && rest[0] == ':' {
		rest, gap = rest[1:], 2
	}
	if len(rest) > 0 && rest[0] != ' ' && rest[0] != '\t' {
		return 0, nil, errNoDump
	}
	for len(rest) > 0 {
		spaces := len(rest) - len(bytes.TrimLeft(rest, " \t"))
		rest = rest[spaces:]
		if len(data) > 0 && spaces >= gap || len(rest) == 0 || rest[0] == '|' || rest[0] == '>' {
			break
		}
		word := rest
		if k := bytes.IndexAny(rest, " \t"); k >= 0 {
			word = rest[:k]
		}
		b, err := hexPairs(word)
		if err != nil {
			return 0, nil, errNoDump
		}
		data = append(data, b...)
		rest = rest[len(word):]
	}
	return int(v), data, nil
}

// hexPairs reads pairs of hex digits and nothing else.
func hexPairs(s []byte) ([]byte, error) {
	if len(s)%2 != 0 {
		return nil, errors.New("an odd number of hex digits")
	}
	out := make([]byte, 0, len(s)/2)
	for i := 0; i < len(s); i += 2 {
		hi, ok := hexDigit(s[i])
		lo, ok2 := hexDigit(s[i+1])
		if !ok || !ok2 {
			return nil, errors.New("not a hex digit")
		}
		out = append(out, hi<<4|lo)
	}
	return out, nil
}

// unescape reads hex with a mark before each byte, or each group of them:
// 0x0a, 0x05 or \x0a\x05, with commas, braces and quotes around them.
func unescape(in []byte) ([]byte, error) {
	var out []byte
	for len(in) > 0 {
		switch {
		case bytes.IndexByte([]byte(" \t\r\n,;{}[]\"'"), in[0]) >= 0:
			in = in[1:]
		case len(in) > 2 && (in[0] == '0' || in[0] == '\\') && (in[1] == 'x' || in[1] == 'X'):
			n := 2
			for n < len(in) {
				if _, ok := hexDigit(in[n]); !ok {
					break
				}
				n++
			}
			b, err := hexPairs(in[2:n])
			if err != nil || len(b) == 0 {
				return nil, errors.New("0x or \\x without pairs of hex digits")
			}
			out = append(out, b...)
			in = in[n:]
		default:
			return nil, errors.New("neither 0x nor \\x")
		}
	}
	if len(out) == 0 {
		return nil, errors.New("nothing in it")
	}
	return out, nil
}

// dataURL splits a data: URL of base64 off its beginning.
func dataURL(in []byte) (head, rest []byte) {
	const most = 200
	if len(in) < 5 || !bytes.EqualFold(in[:5], []byte("data:")) {
		return nil, in
	}
	k := bytes.IndexByte(in[:min(len(in), most)], ',')
	if k < 0 || !bytes.HasSuffix(in[:k], []byte(";base64")) {
		return nil, in
	}
	return in[:k+1], in[k+1:]
}

// runs decodes base64, standard or for URLs, padded or not; one padded run may
// follow another, as in grpc-web-text.
func runs(clean []byte) ([]byte, error) {
	enc := base64.StdEncoding
	if bytes.ContainsAny(clean, "-_") {
		enc = base64.URLEncoding
	}
	enc = enc.WithPadding(base64.NoPadding)
	out := make([]byte, 0, enc.DecodedLen(len(clean)))
	for len(clean) > 0 {
		k := bytes.IndexByte(clean, '=')
		if k < 0 {
			k = len(clean)
		}
		var err error
		if out, err = enc.AppendDecode(out, clean[:k]); err != nil {
			return nil, err
		}
		clean = bytes.TrimLeft(clean[k:], "=")
	}
	return out, nil
}
