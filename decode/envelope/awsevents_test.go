package envelope

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"strings"
	"testing"
)

// awsVectors are two messages as the encoder of aws-sdk-go-v2 (aws/protocol/eventstream v1.7.26) writes them: an event
// and an exception, each with headers of six types.
func awsVectors(t testing.TB) []byte {
	text, err := os.ReadFile("testdata/awsevents.hex")
	if err != nil {
		t.Fatal(err)
	}
	b, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// feedAll feeds a body in pieces of n bytes.
func feedAll(o Options, body []byte, n int) (frames []Frame, err error) {
	d := NewDecoder(o)
	for p := body; len(p) > 0; {
		k := min(n, len(p))
		more, ferr := d.Feed(bytes.Clone(p[:k]))
		frames, err, p = append(frames, more...), errors.Join(err, ferr), p[k:]
	}
	more, cerr := d.Close()
	return append(frames, more...), errors.Join(err, cerr)
}

func TestAWSEvents(t *testing.T) {
	body := awsVectors(t)
	for _, n := range []int{1, 7, len(body)} {
		frames, err := feedAll(Options{AWSEvents: true}, body, n)
		if err != nil || len(frames) != 2 {
			t.Fatalf("pieces of %d: %d frames, %v", n, len(frames), err)
		}
		for i, want := range []struct{ event, data string }{
			{"contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"Hel"}}`}, {"throttlingException", `{"message":"slow down"}`},
		} {
			if f := frames[i]; f.Event != want.event || string(f.Data) != want.data || f.Err != nil {
				t.Errorf("pieces of %d: frame %d: %q %q %v", n, i, f.Event, f.Data, f.Err)
			}
		}
		if frames[1].Offset != int64(frames[0].Len) || frames[0].Len+frames[1].Len != len(body) {
			t.Errorf("frames at %d and %d of %d bytes", frames[0].Offset, frames[1].Offset, len(body))
		}
	}
}

func TestBrokenAWSEvents(t *testing.T) {
	body := awsVectors(t)
	for name, c := range map[string]struct {
		change func(b []byte) []byte
		frames int
		want   string
	}{
		"payload": {func(b []byte) []byte { b[0xb4-8]++; return b }, 2, "the CRC of the message is wrong"},
		"length":  {func(b []byte) []byte { b[3]++; return b }, 0, "the CRC of the lengths is wrong"},
		"cut":     {func(b []byte) []byte { return b[:len(b)-3] }, 2, "truncated after"},
		"large": {func(b []byte) []byte {
			binary.BigEndian.PutUint32(b, 1<<30)
			binary.BigEndian.PutUint32(b[8:], crc32.ChecksumIEEE(b[:8]))
			return b
		}, 0, ErrTooLarge.Error()},
		"headers": {func(b []byte) []byte {
			binary.BigEndian.PutUint32(b[4:], uint32(len(b)))
			binary.BigEndian.PutUint32(b[8:], crc32.ChecksumIEEE(b[:8]))
			return b
		}, 0, "is too small for headers"},
	} {
		frames, err := feedAll(Options{AWSEvents: true, MaxFrame: 1 << 20}, c.change(bytes.Clone(body)), len(body))
		for i := range frames {
			err = errors.Join(err, frames[i].Err)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || len(frames) != c.frames {
			t.Errorf("%s: %d frames, %v", name, len(frames), err)
		}
	}
}

// FuzzAWSEvents checks that any bytes are split within their bounds, in one piece as byte by byte.
func FuzzAWSEvents(f *testing.F) {
	f.Add(awsVectors(f))
	f.Fuzz(func(t *testing.T, body []byte) {
		o := Options{AWSEvents: true, MaxFrame: 1 << 16}
		whole, err := feedAll(o, body, len(body)+1)
		single, serr := feedAll(o, body, 1)
		if len(whole) != len(single) || (err == nil) != (serr == nil) {
			t.Fatalf("%d and %d frames, %v and %v", len(whole), len(single), err, serr)
		}
		size := 0
		for i := range whole {
			if !bytes.Equal(whole[i].Data, single[i].Data) || whole[i].Event != single[i].Event {
				t.Fatalf("frame %d: %q and %q", i, whole[i].Data, single[i].Data)
			}
			size += whole[i].Len
		}
		if size > len(body) || err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && size == len(body) && size > 0 && !errors.Is(err, ErrTooLarge) && whole[len(whole)-1].Err == nil {
			t.Fatalf("frames of %d bytes in %d: %v", size, len(body), err)
		}
	})
}
