package text

import (
	"bytes"
	"cmp"
	"compress/flate"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"unwire/decode/envelope"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// An inputEncoding describes how the bytes of a document were encoded in the input: raw, hex or base64. Parse uses
// it to encode edited bytes in the same way. The zero value is raw.
//
// Shape: a regular style of hex or base64 is described by style. An irregular text is stored instead,
// compressed, with a hash of the bytes that it encodes. It is used as long as the bytes are unedited.
type inputEncoding struct {
	// form is the encoding, "raw", "hex" or "base64".
	form string

	// style is the layout of hex or base64.
	style textLayout

	// kept is the original input if its layout is irregular, or nil.
	kept []byte

	// ofHash is the first half of the SHA-256, in hex, of the bytes that kept encodes. If a document's bytes have
	// another hash, they were edited and kept is not used.
	ofHash string

	// packed is the compression of the whole document, "gzip" or "zstd", or "".
	packed string

	// packedRaw is the compressed input if compressing again would yield other bytes, or nil.
	packedRaw []byte

	// packedHash is the first half of the SHA-256, in hex, of the bytes that packedRaw compresses. If a document's
	// bytes have another hash, they were edited and packedRaw is not used.
	packedHash string

	// inflateError is the reason why compressed data could not be decompressed, or "".
	inflateError string
}

// A textLayout is a regular layout of hex or base64 text.
type textLayout struct {
	// begin is the text before everything: 0x, or the head of a data URL.
	begin string

	// upper means that hex digits are upper-case.
	upper bool

	// group is the number of bytes between spaces in hex; 0 for no spaces.
	group int

	// url means that base64 uses the URL-safe alphabet.
	url bool

	// bare means that base64 has no padding characters.
	bare bool

	// cols is the number of characters per line; 0 for a single line.
	cols int

	// nl is the line separator, "\n" or "\r\n".
	nl string

	// end is the text after the last line.
	end string
}

// maxKept is the maximum size in bytes to which a kept input is decompressed: 1 GiB.
const maxKept = 1 << 30

// readSource detects how the input is encoded and returns the bytes that it encodes.
func readSource(in []byte, o Options) (inputEncoding, []byte, error) {
	s, data, err := readForm(in, o.In)
	if err != nil {
		return s, nil, err
	}
	return s, s.unpack(data, o.MaxInflated), nil
}

// readForm decodes hex or base64 in the input. form is the form that the user selected, or "" if it is to be
// detected.
func readForm(in []byte, form string) (inputEncoding, []byte, error) {
	switch form {
	case "raw":
		return inputEncoding{form: "raw"}, in, nil
	case "hex", "base64":
		data, err := decodeForm(in, form)
		if err != nil {
			return inputEncoding{}, nil, fmt.Errorf("text: the input is not %s: %w", form, err)
		}
		return newSource(in, form, data), data, nil
	case "", "auto":
		// Detect hex before base64, because hex digits are valid base64.
		if isField(in) {
			return inputEncoding{form: "raw"}, in, nil
		}
		for _, form := range []string{"hex", "base64"} {
			if !mayBeText(in) {
				continue
			}
			if data, err := decodeForm(in, form); err == nil && plausibleForm(in, form, data) {
				return newSource(in, form, data), data, nil
			}
		}
		return inputEncoding{form: "raw"}, in, nil
	}

	return inputEncoding{}, nil, fmt.Errorf("the input encoding must be auto, raw, hex or base64, not %q", form)
}

// isField reports whether in is a protobuf message with one short string field whose tag and length
// bytes happen to be white space characters. Without this check they would be skipped as white space
// before hex.
func isField(in []byte) bool {
	return len(in) > 2 && in[0] == '\n' && (in[1] == ' ' || in[1] >= '\t' && in[1] <= '\r') && int(in[1]) == len(in)-2
}

// mayBeText reports whether in may be hex or base64, i.e. has only ASCII text at its beginning. It examines only
// that, so that a large binary input is not decoded in vain.
func mayBeText(in []byte) bool {
	for _, c := range in[:min(len(in), 4096)] {
		if c >= 0x7f || c < ' ' && c != '\t' && c != '\n' && c != '\r' {
			return false
		}
	}
	return true
}

// unpack decompresses data if it is a valid gzip or other compressed stream, and returns data unchanged
// otherwise.
func (s *inputEncoding) unpack(data []byte, limit int64) []byte {
	name := envelope.Sniff(data)
	if name == "" {
		return data
	}
	out, err := envelope.Decompress(name, data, limit)
	if err != nil {
		s.inflateError = err.Error()
		return data
	}
	s.packed = name
	// Compressors differ, so keep the original output if ours is not the same.
	if again, err := envelope.Compress(name, out); err != nil || !bytes.Equal(again, data) {
		s.packedRaw, s.packedHash = data, hashOf(out)
	}
	return out
}

// hashOf returns the first half of the SHA-256 hash of b, in hex.
func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// plausibleForm reports whether the text in, which is valid in the given form (hex or base64), is probably meant as
// such. data are the decoded bytes.
func plausibleForm(in []byte, form string, data []byte) bool {
	if form == "hex" && !isSource(in) {
		return len(data) >= 2
	}
	if head, _ := dataURL(in); head != nil || envelope.Sniff(data) != "" {
		return true
	}
	if len(data) < 5 {
		return false
	}
	// Words are valid base64, too. So the decoded bytes must have a recognizable structure.
	switch shapeOf(data, Options{segmentLen: defaultSegmentLen}, new(wire.Tree)) {
	case "frames", "delimited":
		return true
	}
	kind, _, _ := kind.NewReader(wire.Parse(data, wire.Options{}), nil).Best(0)
	return kind == wire.KindMessage
}

// newSource returns the source for in, which encodes data in the given form.
func newSource(in []byte, form string, data []byte) inputEncoding {
	s := inputEncoding{form: form, style: styleOf(in, form)}
	// The style is regular if it reproduces the input.
	if bytes.Equal(s.style.append(nil, form, data), in) {
		return s
	}
	return inputEncoding{form: form, style: s.style, kept: in, ofHash: hashOf(data)}
}

// decodeForm decodes hex or base64 with white space anywhere. Hex may also be a dump, have 0x or \x before the
// bytes or separators between them, or be a literal of a programming language. Base64 may be a data URL.
func decodeForm(in []byte, form string) ([]byte, error) {
	body := in
	if form == "base64" {
		_, body = dataURL(in)
	}
	clean := make([]byte, 0, len(body))
	for _, c := range body {
		switch c {
		case ' ', '\t', '\n', '\r':
		default:
			clean = append(clean, c)
		}
	}
	if form == "base64" {
		return decodeBase64Runs(clean)
	}

	// A dump is tested first, because its offsets are hex as well.
	if data, err := undump(in); err == nil && bytes.ContainsAny(in, " :") {
		return data, nil
	}
	n, err := hex.Decode(clean, clean)
	if err == nil {
		return clean[:n], nil
	}
	if k := bytes.IndexFunc(in, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF \t\r\n", r) }); k >= 0 {
		err = fmt.Errorf("%q at byte %d is not a hex digit", in[k], k)
	}
	// The error refers to plain hex unless another form fits.
	for _, read := range []func([]byte) ([]byte, error){readMarked, readSeparated, readList, readLiteral} {
		if data, err := read(in); err == nil {
			return data, nil
		}
	}
	return nil, err
}

// styleOf guesses the layout of the hex or base64 in from its first line. The caller verifies the guess.
func styleOf(in []byte, form string) textLayout {
	var s textLayout
	body := bytes.TrimRight(in, "\r\n\t ")
	s.end = string(in[len(body):])

	// A data URL is base64 behind a prefix, which is written back unchanged.
	if head, rest := dataURL(body); form == "base64" && head != nil {
		s.begin, body = string(head), rest
	}

	// A hex dump is written back as rows of 16 bytes, without its offsets and characters.
	if form == "hex" {
		if _, err := undump(in); err == nil && bytes.ContainsAny(in, " :") {
			return textLayout{group: 1, cols: 47, nl: "\n", end: s.end}
		}
		if rest, ok := bytes.CutPrefix(body, []byte("0x")); ok {
			s.begin, body = "0x", rest
		}
	}

	// The first line shows the length of lines and groups.
	line := body
	if i := bytes.IndexByte(body, '\n'); i >= 0 {
		line, s.nl = body[:i], "\n"
		if i > 0 && body[i-1] == '\r' {
			line, s.nl = body[:i-1], "\r\n"
		}
		s.cols = len(line)
	}
	if form == "hex" {
		s.upper = bytes.ContainsAny(line, "ABCDEF")
		if i := bytes.IndexByte(line, ' '); i > 0 && i%2 == 0 {
			s.group = i / 2
		}
		return s
	}
	s.url = bytes.ContainsAny(body, "-_")
	s.bare = !bytes.HasSuffix(body, []byte("="))
	return s
}

// append appends data to dst, encoded in this style of hex or base64.
func (s textLayout) append(dst []byte, form string, data []byte) []byte {
	dst = append(dst, s.begin...)
	if form == "hex" {
		return append(s.appendHex(dst, data), s.end...)
	}
	enc := base64.StdEncoding
	if s.url {
		enc = base64.URLEncoding
	}
	if s.bare {
		enc = enc.WithPadding(base64.NoPadding)
	}
	text := enc.AppendEncode(nil, data)
	for s.cols > 0 && len(text) > s.cols {
		dst = append(append(dst, text[:s.cols]...), s.nl...)
		text = text[s.cols:]
	}
	return append(append(dst, text...), s.end...)
}

// appendHex appends data as hex with the style's groups and lines.
func (s textLayout) appendHex(dst, data []byte) []byte {
	digits := "0123456789abcdef"
	if s.upper {
		digits = "0123456789ABCDEF"
	}
	line := len(dst)
	for i, c := range data {
		// gap means that a group ends before this byte.
		gap := s.group > 0 && i > 0 && (len(dst)-line+1)%(2*s.group+1) == 0
		need := 2
		if gap {
			need = 3
		}
		switch {
		case s.cols > 0 && len(dst) > line && len(dst)-line+need > s.cols:
			dst = append(dst, s.nl...)
			line = len(dst)
		case gap && len(dst) > line:
			dst = append(dst, ' ')
		}
		dst = append(dst, digits[c>>4], digits[c&15])
	}
	return dst
}

// plain reports whether the input was neither hex, base64 nor compressed.
func (s inputEncoding) plain() bool { return (s.form == "raw" || s.form == "") && s.packed == "" }

// restore encodes data (compression, then hex or base64) in the same way as the input was.
func (s inputEncoding) restore(data []byte) []byte {
	if s.packed != "" {
		data = s.pack(data)
	}
	if s.form == "raw" || s.form == "" {
		return data
	}
	if s.kept != nil && hashOf(data) == s.ofHash {
		return s.kept
	}
	return s.style.append(nil, s.form, data)
}

// pack compresses the document if the input was compressed as a whole.
func (s inputEncoding) pack(data []byte) []byte {
	if s.packedRaw != nil && hashOf(data) == s.packedHash {
		return s.packedRaw
	}
	out, err := envelope.Compress(s.packed, data)
	if err != nil {
		// This cannot happen: the name was checked when the directive was parsed.
		return data
	}
	return out
}

// words returns the words of the comment in which the printed text describes how the input was encoded; nil for raw
// input.
func (s inputEncoding) words() ([]string, error) {
	// A binary input needs no directive, because its bytes are the document itself.
	if (s.form == "raw" || s.form == "") && s.packed == "" {
		return nil, nil
	}
	w := []string{cmp.Or(s.form, "raw")}
	addIf := func(on bool, word string) {
		if on {
			w = append(w, word)
		}
	}
	addIf(s.style.upper, "upper")
	addIf(s.style.url, "url")
	addIf(s.style.bare, "bare")
	addIf(s.style.group > 0, "group:"+strconv.Itoa(s.style.group))
	addIf(s.style.cols > 0, "cols:"+strconv.Itoa(s.style.cols))
	addIf(s.style.nl != "", "nl:"+hex.EncodeToString([]byte(s.style.nl)))
	addIf(s.style.end != "", "end:"+hex.EncodeToString([]byte(s.style.end)))
	addIf(s.style.begin != "", "begin:"+hex.EncodeToString([]byte(s.style.begin)))

	// The compressed original is stored too, since compressing again may give other bytes.
	if s.packed != "" {
		addIf(true, s.packed)
		addIf(s.packedRaw != nil, "packed-of:"+s.packedHash)
		addIf(s.packedRaw != nil, "packed:"+base64.RawStdEncoding.EncodeToString(s.packedRaw))
	}
	if s.kept == nil {
		return w, nil
	}

	// An irregular text is part of the directive, compressed by deflate.
	var b bytes.Buffer
	z, err := flate.NewWriter(&b, flate.BestSpeed)
	if err != nil {
		return nil, fmt.Errorf("text: %w", err)
	}
	if _, err := z.Write(s.kept); err != nil {
		return nil, fmt.Errorf("text: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("text: %w", err)
	}
	return append(w, "of:"+s.ofHash, "text:"+base64.RawStdEncoding.EncodeToString(b.Bytes())), nil
}

// parseWords parses the words that the method words returns.
func parseWords(words []string) (inputEncoding, error) {
	s := inputEncoding{form: words[0]}
	if s.form != "hex" && s.form != "base64" && s.form != "raw" {
		return s, fmt.Errorf("%.40q is not an encoding: use hex, base64 or raw", s.form)
	}
	// Each word restores one detail of the original input, so that encoding it again gives the same
	// bytes.
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, ":")
		var err error
		switch key {
		case "upper":
			s.style.upper = true
		case "url":
			s.style.url = true
		case "bare":
			s.style.bare = true
		case "group":
			s.style.group, err = positive(value)
		case "cols":
			s.style.cols, err = positive(value)
		case "nl":
			s.style.nl, err = unhexString(value)
		case "end":
			s.style.end, err = unhexString(value)
		case "begin":
			s.style.begin, err = unhexString(value)
		case "gzip", "zstd":
			s.packed = key
		case "packed-of":
			s.packedHash = value
		case "packed":
			s.packedRaw, err = base64.RawStdEncoding.DecodeString(value)
		case "of":
			s.ofHash = value
		case "text":
			s.kept, err = inflateKept(value)
		default:
			err = errors.New("the word is not known")
		}
		if err != nil {
			return s, fmt.Errorf("%.40q: %w", w, err)
		}
	}

	return s, nil
}

// inflateKept decodes and decompresses a stored original input.
func inflateKept(value string) ([]byte, error) {
	b, err := base64.RawStdEncoding.DecodeString(value)
	if err != nil {
		return nil, err
	}
	r, err := new(envelope.Decompressor).Open(envelope.RawDeflate, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(r, maxKept+1))
	if err != nil {
		return nil, err
	}
	if len(out) > maxKept {
		return nil, fmt.Errorf("there are more than %d kept bytes, which is the limit", maxKept)
	}
	return append([]byte{}, out...), nil
}

// positive parses a decimal number from 1 to 2^20.
func positive(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n <= 0 || n > 1<<20 {
		return 0, errors.New("the number must be from 1 to 1048576")
	}
	return n, nil
}

// unhexString decodes hex to a string.
func unhexString(s string) (string, error) {
	b, err := hex.DecodeString(s)
	return string(b), err
}
