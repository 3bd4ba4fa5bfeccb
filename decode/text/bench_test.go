package text

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"testing"
	"time"

	"github.com/protocolbuffers/protoscope"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// descriptors is a real message of some 100 KB or more: a set of file descriptors.
func descriptors(t testing.TB) []byte {
	set := &descriptorpb.FileDescriptorSet{}
	protoregistry.GlobalFiles.RangeFiles(func(fd protoreflect.FileDescriptor) bool {
		set.File = append(set.File, protodesc.ToFileDescriptorProto(fd))
		return true
	})
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	for len(b) < 100<<10 {
		b = append(b, b...)
	}
	return b
}

// walk reads all tags of a message, and of payloads that are messages, and
// keeps nothing: as fast as the format can be read.
func walk(b []byte) (fields int, ok bool) {
	for len(b) > 0 {
		_, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fields, false
		}
		b = b[n:]
		fields++
		if typ == protowire.BytesType {
			v, k := protowire.ConsumeBytes(b)
			if k < 0 {
				return fields, false
			}
			inner, _ := walk(v)
			fields, b = fields+inner, b[k:]
			continue
		}
		k := protowire.ConsumeFieldValue(1, typ, b)
		if k < 0 {
			return fields, false
		}
		b = b[k:]
	}
	return fields, true
}

// walkTime is what a bare walk over data takes.
func walkTime(b *testing.B, data []byte) time.Duration {
	rounds := 0
	start := time.Now()
	for ; time.Since(start) < 200*time.Millisecond; rounds++ {
		if n, ok := walk(data); n == 0 || !ok {
			b.Fatal("the walk failed")
		}
	}
	return time.Since(start) / time.Duration(rounds)
}

// BenchmarkFormats writes and reads a real message as text and as JSON;
// "x-walk" is how many times as long as a bare walk over its tags it takes.
// Beside it are Protoscope and protoc --decode_raw, where there is one.
func BenchmarkFormats(b *testing.B) {
	data := descriptors(b)
	bare := walkTime(b, data)
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
			b.ReportAllocs()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if err := f(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(bare), "x-walk")
		})
	}
	run("text-write", func() error { return d.Text(io.Discard) })
	run("text-read", func() error { _, err := Parse(text.Bytes()); return err })
	run("json-write", func() error { return d.JSON(io.Discard) })
	run("json-read", func() error { _, err := ParseJSON(js.Bytes()); return err })
	var s string
	run("protoscope-write", func() error { s = protoscope.Write(data, protoscope.WriterOptions{}); return nil })
	run("protoscope-read", func() error { _, err := protoscope.NewScanner(s).Exec(); return err })
	if protoc, err := exec.LookPath("protoc"); err == nil {
		run("protoc-decode-raw", func() error {
			cmd := exec.Command(protoc, "--decode_raw")
			cmd.Stdin = bytes.NewReader(data)
			return cmd.Run()
		})
	}
}
