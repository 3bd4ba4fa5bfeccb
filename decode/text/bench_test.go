package text

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"testing"

	"github.com/protocolbuffers/protoscope"

	"unwire/captures/need"
	"unwire/decode/internal/barewalk"
)

// BenchmarkFormats writes and reads a real message as text and as JSON;
// "x-walk" is how many times as long as a bare walk over its tags it takes.
// Beside it are Protoscope and protoc --decode_raw, where there is one.
func BenchmarkFormats(b *testing.B) {
	data := barewalk.Descriptors(b)
	d, err := Decode(data, Options{In: "raw", As: "message"})
	if err != nil {
		b.Fatal(err)
	}
	var text, js bytes.Buffer
	if err := errors.Join(d.Text(&text), d.JSON(&js)); err != nil {
		b.Fatal(err)
	}
	run := func(name string, f func() error) {
		b.Run(name, func(b *testing.B) {
			barewalk.Compare(b, data, func() {
				if err := f(); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
	run("text-write", func() error { return d.Text(io.Discard) })
	plain, err := Decode(data, Options{In: "raw", As: "message", Plain: true})
	if err != nil {
		b.Fatal(err)
	}
	run("text-write-plain", func() error { return plain.Text(io.Discard) })
	run("text-read", func() error { _, err := Parse(text.Bytes()); return err })
	run("json-write", func() error { return d.JSON(io.Discard) })
	run("json-read", func() error { _, err := ParseJSON(js.Bytes()); return err })
	var s string
	run("protoscope-write", func() error { s = protoscope.Write(data, protoscope.WriterOptions{}); return nil })
	run("protoscope-read", func() error { _, err := protoscope.NewScanner(s).Exec(); return err })
	if protoc, err := need.CheckProtoc(); err == nil {
		run("protoc-decode-raw", func() error {
			cmd := exec.Command(protoc, "--decode_raw")
			cmd.Stdin = bytes.NewReader(data)
			return cmd.Run()
		})
	}
}
