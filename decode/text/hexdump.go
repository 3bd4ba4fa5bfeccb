package text

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strconv"
)

// errNoDump is returned if the input is not a hex dump.
var errNoDump = errors.New("the input is not a hex dump")

// A dumpLine is one parsed line of a hex dump.
type dumpLine struct {
	// off is the offset that begins the line, parsed as hex and as octal; -1 if it is not such a number.
	off [2]int

	// data are the bytes that the line shows.
	data []byte

	// words means that the line shows 16-bit words. In a dump with the machine's byte order, the two
	// bytes of each are swapped.
	words bool

	// colon means that a colon follows the offset, as in the output of xxd.
	colon bool

	// repeat means that the line is "*": the previous line repeats up to the next offset.
	repeat bool
}

// undump decodes the output of hexdump, hexdump -C, xxd, od -tx1 (also with -Ax), od -x and Wireshark: lines of an
// offset, bytes in hex, and optional text.
//
// Shape: the offsets identify a dump, because each must equal the number of bytes before it.
func undump(in []byte) ([]byte, error) {
	var lines []dumpLine
	for len(in) > 0 {
		var line []byte
		line, in, _ = bytes.Cut(in, []byte("\n"))
		line = bytes.TrimRight(line, " \t\r")
		if len(line) == 0 {
			continue
		}
		l, err := readDumpLine(line)
		if err != nil {
			return nil, err
		}
		lines = append(lines, l)
	}

	if len(lines) == 0 {
		return nil, errNoDump
	}
	// hexdump and od print words in the machine's byte order. xxd, whose offsets end in a colon, does not.
	swapped := !lines[0].colon
	for _, l := range lines {
		swapped = swapped && (l.words || l.repeat || len(l.data) == 0)
	}
	// hexdump and xxd print offsets in hex, od in octal.
	out, err := joinDump(lines, 0, swapped)
	if err != nil {
		out, err = joinDump(lines, 1, swapped)
	}
	return out, err
}

// maxRepeated is the maximum number of bytes that "*" lines may represent: 64 MiB.
const maxRepeated = 64 << 20

// joinDump concatenates the bytes of lines and checks the offsets. radix is the index in dumpLine.off: 0 for hex, 1
// for octal. swapped swaps the bytes of 16-bit words.
func joinDump(lines []dumpLine, radix int, swapped bool) ([]byte, error) {
	var out, last []byte
	repeat := false
	for i, l := range lines {
		if l.repeat {
			if len(last) == 0 || repeat {
				return nil, errNoDump
			}
			repeat = true
			continue
		}
		off := l.off[radix]
		// Fill the gap that "*" represents with copies of the line before it.
		if repeat {
			if off < len(out) || (off-len(out))%len(last) != 0 || off > maxRepeated {
				return nil, errNoDump
			}
			out = append(out, bytes.Repeat(last, (off-len(out))/len(last))...)
			repeat = false
		}
		switch {
		case i == len(lines)-1 && len(l.data) == 0 && swapped && len(out) > 0 && off == len(out)-1:
			// With an odd number of bytes, the second half of the last word is padding.
			return out[:off], nil
		case off != len(out) || len(l.data) == 0 && i < len(lines)-1:
			return nil, errNoDump
		}
		out = append(out, l.data...)
		// Swap the bytes of each word.
		if last = l.data; swapped {
			last = bytes.Clone(l.data)
			for k := 0; k+1 < len(last); k += 2 {
				last[k], last[k+1] = last[k+1], last[k]
			}
			copy(out[len(out)-len(last):], last)
		}
	}

	if repeat {
		return nil, errNoDump
	}
	return out, nil
}

// readDumpLine parses one line of a hex dump.
func readDumpLine(line []byte) (dumpLine, error) {
	l := dumpLine{words: true}
	if string(line) == "*" {
		l.repeat = true
		return l, nil
	}

	// The offset.
	n := 0
	for n < len(line) {
		if _, ok := hexDigit(line[n]); !ok {
			break
		}
		n++
	}
	v, err := strconv.ParseUint(string(line[:n]), 16, 40)
	if err != nil || n < 4 {
		return l, errNoDump
	}
	l.off = [2]int{int(v), -1}
	if v, err := strconv.ParseUint(string(line[:n]), 8, 40); err == nil {
		l.off[1] = int(v)
	}
	rest := line[n:]
	// gap is the number of spaces before the text column.
	gap := 3
	if len(rest) > 0 && rest[0] == ':' {
		rest, gap, l.colon = rest[1:], 2, true
	}
	if len(rest) > 0 && rest[0] != ' ' && rest[0] != '\t' {
		return l, errNoDump
	}
	// hexdump -x prints four spaces between words.
	wide := bytes.HasPrefix(rest, []byte("    "))
	for len(rest) > 0 {
		spaces := len(rest) - len(bytes.TrimLeft(rest, " \t"))
		rest = rest[spaces:]
		// The text column ends the bytes.
		if len(l.data) > 0 && spaces >= gap && !wide || len(rest) == 0 || rest[0] == '|' || rest[0] == '>' {
			break
		}
		word := rest
		if k := bytes.IndexAny(rest, " \t"); k >= 0 {
			word = rest[:k]
		}
		b, err := hexPairs(word)
		if err != nil {
			return l, errNoDump
		}
		l.words = l.words && len(b) == 2
		l.data = append(l.data, b...)
		rest = rest[len(word):]
	}
	return l, nil
}

// hexPairs decodes hex digits without white space.
func hexPairs(s []byte) ([]byte, error) {
	if len(s)%2 != 0 {
		return nil, errors.New("the number of hex digits is odd")
	}
	out := make([]byte, 0, len(s)/2)
	for i := 0; i < len(s); i += 2 {
		hi, ok := hexDigit(s[i])
		lo, ok2 := hexDigit(s[i+1])
		if !ok || !ok2 {
			return nil, errors.New("the line has a character that is not a hex digit")
		}
		out = append(out, hi<<4|lo)
	}
	return out, nil
}

// dataURL splits a base64 data URL into its head ("data:…;base64,") and the rest. For other input, head is nil and
// rest is in.
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

// decodeBase64Runs decodes base64 in the standard or the URL alphabet, with or without padding. Several padded runs
// may follow each other, as in grpc-web-text. clean has no white space.
func decodeBase64Runs(clean []byte) ([]byte, error) {
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
