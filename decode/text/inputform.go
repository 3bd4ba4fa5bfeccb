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

// A source is how a document's bytes were written down. The zero value is raw.
//
// Shape: where the style of the text is regular, it is described, and other
// bytes can be written in the same style. Where it is not, the text is kept, deflated,
// with a hash of the bytes it stands for: it is used as long as they have not been edited.
type source struct {
	form   string // "raw", "hex", "base64"
	style  style
	kept   []byte // the text itself, or nil
	ofHash string // of the bytes that kept stands for

	packed string // the compression of all of it: "gzip", "zstd"; "" for none

	// What the sender's compressor gave; nil where ours gives the same.
	packedRaw []byte

	packedHash string // of the bytes that packedRaw stands for
	why        string // it is still compressed; "" where it is not
}

// A style is a regular way to write hex or base64.
type style struct {
	begin string // in front of all: 0x, or the head of a data: URL
	upper bool   // hex: A to F
	group int    // hex: bytes between spaces; 0 for no spaces
	url   bool   // base64: the alphabet for URLs
	bare  bool   // base64: no padding
	cols  int    // characters of a line; 0 for one line
	nl    string // between lines
	end   string // behind the last one
}

const maxKept = 1 << 30 // bytes of a kept text that we inflate

// readSource finds the bytes that in stands for.
func readSource(in []byte, o Options) (source, []byte, error) {
	s, data, err := readForm(in, o.In)
	if err != nil {
		return s, nil, err
	}
	return s, s.unpack(data, o.MaxInflated), nil
}

func readForm(in []byte, form string) (source, []byte, error) {
	switch form {
	case "raw":
		return source{form: "raw"}, in, nil
	case "hex", "base64":
		data, err := decodeForm(in, form)
		if err != nil {
			return source{}, nil, fmt.Errorf("text: the input is no %s: %w", form, err)
		}
		return newSource(in, form, data), data, nil
	case "", "auto":
		if isField(in) {
			return source{form: "raw"}, in, nil
		}
		for _, form := range []string{"hex", "base64"} {
			if !mayBe(in) {
				continue
			}
			if data, err := decodeForm(in, form); err == nil && plausibleForm(in, form, data) {
				return newSource(in, form, data), data, nil
			}
		}
		return source{form: "raw"}, in, nil
	}
	return source{}, nil, fmt.Errorf("text: %q is neither auto, raw, hex nor base64", form)
}

// isField tells one field of text, whose tag and length are white space, from text
// that has white space in front.
func isField(in []byte) bool {
	return len(in) > 2 && in[0] == '\n' && (in[1] == ' ' || in[1] >= '\t' && in[1] <= '\r') && int(in[1]) == len(in)-2
}

// mayBe looks at the beginning, so that a large input of bytes is not read for nothing.
func mayBe(in []byte) bool {
	for _, c := range in[:min(len(in), 4096)] {
		if c >= 0x7f || c < ' ' && c != '\t' && c != '\n' && c != '\r' {
			return false
		}
	}
	return true
}

// unpack undoes the compression of data as a whole, if its magic number tells
// one and it holds to the end.
func (s *source) unpack(data []byte, limit int64) []byte {
	name := envelope.Sniff(data)
	if name == "" {
		return data
	}
	out, err := envelope.Decompress(name, data, limit)
	if err != nil {
		s.why = strings.TrimPrefix(err.Error(), "envelope: ")
		return data
	}
	s.packed = name
	if again, err := envelope.Compress(name, out); err != nil || !bytes.Equal(again, data) {
		s.packedRaw, s.packedHash = data, hashOf(out)
	}
	return out
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// plausibleForm tells whether a text that could be hex or base64 is meant so.
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
	// Words are base64, too: what they decode to must make sense.
	switch shapeOf(data, Options{segmentLen: defaultSegmentLen}, new(wire.Tree)) {
	case "frames", "delimited":
		return true
	}
	kind, _, _ := kind.NewReader(wire.Parse(data, wire.Options{}), nil).Best(0)
	return kind == wire.KindMessage
}

func newSource(in []byte, form string, data []byte) source {
	s := source{form: form, style: styleOf(in, form)}
	if bytes.Equal(s.style.append(nil, form, data), in) {
		return s
	}
	return source{form: form, style: s.style, kept: in, ofHash: hashOf(data)}
}

// decodeForm reads hex or base64 with white space anywhere; hex also as a dump, with
// 0x or \x before the bytes, a colon or dash between them, or as programs write bytes;
// base64 also as a data: URL.
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
		return runs(clean)
	}
	if data, err := undump(in); err == nil && bytes.ContainsAny(in, " :") {
		return data, nil
	}
	n, err := hex.Decode(clean, clean)
	if err == nil {
		return clean[:n], nil
	}
	if k := bytes.IndexFunc(in, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF \t\r\n", r) }); k >= 0 {
		err = fmt.Errorf("%q at byte %d is no hex digit", in[k], k)
	}
	for _, read := range []func([]byte) ([]byte, error){readMarked, readSeparated, readList, readLiteral} {
		if data, err := read(in); err == nil {
			return data, nil
		}
	}
	return nil, err
}

// styleOf guesses the style from the first line; the caller checks it.
func styleOf(in []byte, form string) style {
	var s style
	body := bytes.TrimRight(in, "\r\n\t ")
	s.end = string(in[len(body):])
	if head, rest := dataURL(body); form == "base64" && head != nil {
		s.begin, body = string(head), rest
	}
	if form == "hex" {
		if _, err := undump(in); err == nil && bytes.ContainsAny(in, " :") {
			return style{group: 1, cols: 47, nl: "\n", end: s.end}
		}
		if rest, ok := bytes.CutPrefix(body, []byte("0x")); ok {
			s.begin, body = "0x", rest
		}
	}
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

// append writes data in the style.
func (s style) append(dst []byte, form string, data []byte) []byte {
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

func (s style) appendHex(dst, data []byte) []byte {
	digits := "0123456789abcdef"
	if s.upper {
		digits = "0123456789ABCDEF"
	}
	line := len(dst)
	for i, c := range data {
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

// plain reports that the bytes were written as they are.
func (s source) plain() bool { return (s.form == "raw" || s.form == "") && s.packed == "" }

// restore writes data as the source was written.
func (s source) restore(data []byte) []byte {
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

// pack compresses data as a whole.
func (s source) pack(data []byte) []byte {
	if s.packedRaw != nil && hashOf(data) == s.packedHash {
		return s.packedRaw
	}
	out, err := envelope.Compress(s.packed, data)
	if err != nil {
		return data // the name was checked when it was read
	}
	return out
}

// words writes the source as the words of a directive; raw has none.
func (s source) words() ([]string, error) {
	if (s.form == "raw" || s.form == "") && s.packed == "" {
		return nil, nil
	}
	w := []string{cmp.Or(s.form, "raw")}
	flag := func(on bool, word string) {
		if on {
			w = append(w, word)
		}
	}
	flag(s.style.upper, "upper")
	flag(s.style.url, "url")
	flag(s.style.bare, "bare")
	flag(s.style.group > 0, "group:"+strconv.Itoa(s.style.group))
	flag(s.style.cols > 0, "cols:"+strconv.Itoa(s.style.cols))
	flag(s.style.nl != "", "nl:"+hex.EncodeToString([]byte(s.style.nl)))
	flag(s.style.end != "", "end:"+hex.EncodeToString([]byte(s.style.end)))
	flag(s.style.begin != "", "begin:"+hex.EncodeToString([]byte(s.style.begin)))
	if s.packed != "" {
		flag(true, s.packed)
		flag(s.packedRaw != nil, "packed-of:"+s.packedHash)
		flag(s.packedRaw != nil, "packed:"+base64.RawStdEncoding.EncodeToString(s.packedRaw))
	}
	if s.kept == nil {
		return w, nil
	}
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

// parseWords reads what words wrote.
func parseWords(words []string) (source, error) {
	s := source{form: words[0]}
	if s.form != "hex" && s.form != "base64" && s.form != "raw" {
		return s, fmt.Errorf("%.40q is neither hex nor base64 nor raw", s.form)
	}
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
			err = errors.New("not known")
		}
		if err != nil {
			return s, fmt.Errorf("%.40q: %w", w, err)
		}
	}
	return s, nil
}

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
		return nil, fmt.Errorf("more than %d bytes", maxKept)
	}
	return append([]byte{}, out...), nil
}

func positive(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n <= 0 || n > 1<<20 {
		return 0, errors.New("not a number from 1 to 1048576")
	}
	return n, nil
}

func unhexString(s string) (string, error) {
	b, err := hex.DecodeString(s)
	return string(b), err
}
