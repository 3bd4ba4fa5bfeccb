package text

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"unwire/decode/envelope"
	"unwire/decode/nested"
	"unwire/decode/wire"
)

// lenField appends a length-delimited field.
func lenField(b []byte, number uint64, payload []byte) []byte {
	b = wire.AppendVarint(b, number<<3|uint64(wire.Len))
	return append(wire.AppendVarint(b, uint64(len(payload))), payload...)
}

// holder is a message with payload in field 3, in a message, and fields around it.
func holder(payload []byte) []byte {
	inner := lenField(wire.AppendVarint([]byte{0x08}, 7), 3, payload)
	return append(lenField(lenField(nil, 1, []byte("what stands before")), 2, append(inner, 0x20, 0x01)), 0x28, 0x2a)
}

func textOf(t failer, in []byte) string {
	t.Helper()
	d, err := Decode(in, Options{In: "raw", As: "message"})
	if err != nil {
		t.Fatalf("%v", err)
	}
	var b strings.Builder
	if err := d.Text(&b); err != nil {
		t.Fatalf("%v", err)
	}
	return b.String()
}

func jsonOf(t failer, in []byte) string {
	t.Helper()
	d, err := Decode(in, Options{In: "raw", As: "message"})
	if err != nil {
		t.Fatalf("%v", err)
	}
	var b strings.Builder
	if err := d.JSON(&b); err != nil {
		t.Fatalf("%v", err)
	}
	return b.String()
}

// inBlocks replaces old in the lines of blocks.
func inBlocks(src, old, now string) string {
	lines := strings.SplitAfter(src, "\n")
	for i, l := range lines {
		if strings.HasPrefix(strings.TrimLeft(l, " "), blockMark) {
			lines[i] = strings.ReplaceAll(l, old, now)
		}
	}
	return strings.Join(lines, "")
}

// What is inside a value, in every form, is edited where it stands, and the value
// and the lengths around it are made anew; without an edit the bytes are the same,
// for Protoscope, too.
func TestEditInside(t *testing.T) {
	note := func(s string) []byte {
		b := lenField(nil, 1, []byte("a note about "+s))
		return append(lenField(b, 2, []byte("and some more words")), 0x18, 0x05)
	}
	wrap := func(layers ...nested.Layer) func(string) []byte {
		return func(s string) []byte {
			out, err := nested.Wrap(layers, note(s))
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
	}
	doc := func(l nested.Layer) func(string) []byte {
		return func(s string) []byte {
			out, err := nested.Wrap([]nested.Layer{l}, []byte(`{"query":"about `+s+`: \"quoted, so\"","list":[1,2.50,{}],"none":null}`))
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
	}
	for name, payload := range map[string]func(string) []byte{
		"hex":    wrap("hex"),
		"HEX":    wrap("HEX"),
		"base64": wrap("base64"),
		"base64url": func(s string) []byte {
			return []byte(base64.URLEncoding.EncodeToString(append(note(s), 0x22, 2, 0xff, 0xfe)))
		},
		"gzip":                    wrap("gzip"),
		"zstd":                    wrap("zstd"),
		"hex of gzip":             wrap("hex", "gzip"),
		"base64 of zstd":          wrap("base64", "zstd"),
		"JSON":                    doc(nested.JSONCompact),
		"JSON with spaces":        doc("JSON with spaces"),
		"JSON on lines":           doc("JSON on lines"),
		"base64 of JSON on lines": func(s string) []byte { return []byte(base64.StdEncoding.EncodeToString(doc("JSON on wider lines")(s))) },
		"envelopes": func(s string) []byte {
			return envelope.Append(envelope.Append(nil, 0, note(s)), 2, []byte("{}"))
		},
		"hex of envelopes": func(s string) []byte {
			return []byte(hex.EncodeToString(envelope.Append(envelope.Append(nil, 0, note(s)), 0, note("the other"))))
		},
		"hex of a message of base64 of a message": func(s string) []byte {
			return []byte(hex.EncodeToString(holder([]byte(base64.StdEncoding.EncodeToString(note(s))))))
		},
		"gzip of text": func(s string) []byte {
			out, err := envelope.Compress("gzip", []byte("lines of plain text\nabout "+s+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			return out
		},
	} {
		in := holder(payload("the sea"))
		src := textOf(t, in)
		if got, err := assemble(src); err != nil || !bytes.Equal(got, in) {
			t.Errorf("%s: Protoscope reads %x, %v", name, got, err)
		}
		if got, err := Parse([]byte(src)); err != nil || !bytes.Equal(got, in) {
			t.Errorf("%s: %x, %v", name, got, err)
		}
		for _, now := range []string{"the desert", "", "a place whose name is so long that the lengths of what stands around it take more bytes than they took: " + strings.Repeat("sand ", 40)} {
			edited := inBlocks(src, "the sea", now)
			want := holder(payload(now))
			got, err := Parse([]byte(edited))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: edited to %.20q:\n%s\ngives %v\n%x, want\n%x", name, now, edited, err, got, want)
			}
			js := jsonOf(t, in)
			at := strings.Index(js, `"inner":`)
			js = js[:at] + strings.ReplaceAll(js[at:], "the sea", now)
			if got, err := ParseJSON([]byte(js)); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: JSON edited to %.20q:\n%s\ngives %v\n%x, want\n%x", name, now, js, err, got, want)
			}
			var piecewise bytes.Buffer
			if err := Encode(&piecewise, []byte(edited), nil); err != nil || !bytes.Equal(piecewise.Bytes(), want) {
				t.Errorf("%s: Encode: %x, %v", name, piecewise.Bytes(), err)
			}
		}
	}
}

// A value that was edited, and its block not, counts, in whatever form it is then.
func TestValueBeforeBlock(t *testing.T) {
	in := holder([]byte(hex.EncodeToString(holder([]byte("words")))))
	src := textOf(t, in)
	from := strings.Index(src, `{"0a`)
	to := strings.Index(src[from:], "}") + from + 1
	for _, value := range []string{`{"none of it"}`, `{}`, `{1: 2 3: {"x"}}`, "{`00`}"} {
		edited := src[:from] + value + src[to:]
		want, err := assemble(edited)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Parse([]byte(edited)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %x, %v, want %x", value, got, err, want)
		}
	}
	upper := src[:from] + strings.ToUpper(src[from:to]) + src[to:]
	want, err := assemble(upper)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Parse([]byte(upper)); err != nil || !bytes.Equal(got, want) {
		t.Errorf("upper case: %x, %v", got, err)
	}
}

func TestBlockErrors(t *testing.T) {
	src := textOf(t, holder([]byte(hex.EncodeToString(lenField(nil, 1, []byte("hello there"))))))
	//  1 1: {"what stands before"}
	//  2 2: {
	//  3   1: 7
	//  4   3: {"0a0b…"}
	//  5   #| hex of a message, …:
	//  6   #|   1: {"hello there"}
	//  7   4: 1
	replace := func(old, now string) string { return strings.Replace(src, old, now, 1) }
	head := src[strings.Index(src, "#|"):]
	head = head[:strings.Index(head, "\n")]
	for _, c := range []struct {
		src          string
		line, column int
		want         string
	}{
		{replace(`"hello there"`, `"hello there`), 6, 12, "the string has no closing quote"},
		{replace(`"hello there"}`, `"hello there"} 2: nan`), 6, 30, "\"nan\" is neither a field, nor a number"},
		{replace(`"hello there"}`, `"hello there" `), 6, 11, "the brace { is not closed"},
		{replace("\n  #|   1: {\"hello there\"}", ""), 5, 3, "the decoded list in the #| lines is empty"},
		{replace("hex of", "hax of"), 5, 3, "is not an encoding that unwire can undo"},
		{replace(head, "#| what is this?"), 5, 3, "the line must name the encoding"},
		{strings.Replace(inBlocks(src, "hello", "hullo"), `{"0a`, `{"0b`, 1), 5, 3, "the value and its decoded content were both edited: edit only one of them"},
		{strings.Replace(src, "  #|", "  5: 1\n  #|", 1), 6, 3, "a line with #| must follow a value in braces"},
		{"#| hex of a message, 00000000:\n", 1, 1, "a line with #| must follow a value in braces"},
		{"1: {\"{}\"} long-form:1\n#| JSON, 00000000:\n", 2, 1, "a line with #| must follow a value"},
		{"1: {`7b7d`}\n#| JSON, 00000000:\n#| {,}\n", 3, 5, "the content is not valid JSON"},
	} {
		_, err := Parse([]byte(c.src))
		var e *Error
		if !errors.As(err, &e) || e.Line != c.line || e.Column != c.column || !strings.Contains(e.Error(), c.want) {
			t.Errorf("%v, want line %d, column %d: %s:\n%s", err, c.line, c.column, c.want, c.src)
		}
	}
	deep := ""
	for range 2 * maxBlocks {
		deep = "1: {\"x\"}\n#| hex of a message, 00000000:\n" + strings.ReplaceAll("#|"+strings.TrimSuffix(deep, "\n"), "\n", "\n#|") + "\n"
	}
	if _, err := Parse([]byte(deep)); err == nil || !strings.Contains(err.Error(), "#| lines are nested more than") {
		t.Errorf("blocks in %d blocks: %v", 2*maxBlocks, err)
	}
}

// After an edit within layers upon layers only the value that they are written in
// has changed, and the lengths around it.
func TestEditInsideAnything(t *testing.T) {
	const mark = "the place that is edited"
	layers := []nested.Layer{"hex", "HEX", "base64", "gzip", "zstd"}
	rapid.Check(t, func(t *rapid.T) {
		// Message in message, or in a field in one or two layers, up to three levels.
		kinds := rapid.SliceOfN(rapid.IntRange(-1, len(layers)-1), 1, 3).Draw(t, "levels")
		noise := func(name string) []byte { return message(t, 3) }
		before, behind := noise("before"), noise("behind")
		build := func(s string) []byte {
			msg := append(lenField(nil, 1, []byte(s)), 0x10, 0x01)
			for i := len(kinds) - 1; i >= 0; i-- {
				payload := msg
				if k := kinds[i]; k >= 0 {
					var err error
					if payload, err = nested.Wrap(layers[k:k+1], msg); err != nil {
						t.Fatal(err)
					}
				}
				msg = append(lenField(nil, 9, []byte("told beside it")), lenField(nil, uint64(i+2), payload)...)
			}
			return append(append(bytes.Clone(before), msg...), behind...)
		}
		in := build(mark)
		src := textOf(t, in)
		now := rapid.SampledFrom([]string{"x", "another one", strings.Repeat("a long one ", 30)}).Draw(t, "now")
		edited := inBlocks(src, `{"`+mark+`"}`, `{"`+now+`"}`)
		if edited == src {
			edited = strings.ReplaceAll(src, `{"`+mark+`"}`, `{"`+now+`"}`)
		}
		if edited == src {
			t.Skip("another reading was likelier")
		}
		want := build(now)
		got, err := Parse([]byte(edited))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%v\n%s\ngives %v\n%x, want\n%x", kinds, edited, err, got, want)
		}
	})
}
