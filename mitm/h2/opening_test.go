package h2

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"unwire/mitm/rewrite"
)

// newSlowly returns a relay whose exchanges are changed, or watched if passes is set, and a reader of what its server
// receives.
func newSlowly(t *testing.T, passes bool) (k *relayed, next func() string) {
	k = newSilentServer(t, func(c *Config) {
		c.rewriteWith(func(string) rewrite.Exchange { return watchable{passes: passes} })
	})
	k.send(k.server, appendFrame(nil, frameSettings, 0, 0, nil))
	framer := http2.NewFramer(nil, k.server)
	framer.ReadMetaHeaders = hpack.NewDecoder(defaultHeaderTable, nil)
	return k, func() string {
		t.Helper()
		_ = k.server.SetReadDeadline(time.Now().Add(testTimeout))
		f, err := framer.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		switch f := f.(type) {
		case *http2.MetaHeadersFrame:
			length := "no length"
			for _, field := range f.Fields {
				if field.Name == "content-length" {
					length = "length " + field.Value
				}
			}
			return fmt.Sprintf("%d HEADERS, %s, end %v", f.StreamID, length, f.StreamEnded())
		case *http2.DataFrame:
			return fmt.Sprintf("%d DATA %q, end %v", f.StreamID, f.Data(), f.StreamEnded())
		}
		return fmt.Sprintf("%d %s", f.Header().StreamID, f.Header().Type)
	}
}

// watchable is slowly whose frames may pass.
type watchable struct {
	slowly
	passes bool
}

func (w watchable) Passes(*rewrite.Frame) bool { return w.passes }

// Frame changes nothing. It ends early with its context, as a held frame does.
func (w watchable) Frame(ctx context.Context, f *rewrite.Frame) (v rewrite.Verdict) {
	if string(f.Data) == "hold" {
		<-ctx.Done()
	}
	return w.slowly.Frame(ctx, f)
}

// request returns the head of a request with a length, and more fields.
func request(up func(...string) []byte, stream uint32, length string, flags uint8) []byte {
	return appendFrame(nil, frameHeaders, flagEndHeaders|flags, stream,
		up(":method", "POST", ":path", "/", ":scheme", "https", ":authority", "a.example", "content-length", length, "x-same", "value"))
}

// TestOpeningsKeepTheirLength: while a request waits for its body, the client opens further streams. All arrive in order
// and with the lengths that they declare, and frames of a request do not overtake its head.
func TestOpeningsKeepTheirLength(t *testing.T) {
	t.Parallel()
	for _, passes := range []bool{false, true} {
		t.Run(fmt.Sprint(passes), func(t *testing.T) {
			t.Parallel()
			k, next := newSlowly(t, passes)
			up := newBlocks()
			write := func(p []byte) {
				t.Helper()
				if _, err := k.client.Write(p); err != nil {
					t.Fatal(err)
				}
			}
			write(request(up, 1, "10", 0))
			write(appendFrame(nil, frameData, 0, 1, []byte("hello")))
			write(request(up, 3, "3", 0))
			write(appendFrame(nil, frameWindowUpdate, 0, 3, []byte{0, 0, 0, 9}))
			write(appendFrame(nil, frameData, flagEndStream, 3, []byte("two")))
			write(request(up, 5, "0", flagEndStream))
			time.Sleep(50 * time.Millisecond)
			write(appendFrame(nil, frameData, flagEndStream, 1, []byte("world")))
			var heads []string
			data := map[byte]string{}
			for len(heads) < 3 || len(data['1']) == 0 || len(data['3']) == 0 {
				f := next()
				switch {
				case f[2:6] == "HEAD":
					heads = append(heads, f)
				case f[2:6] == "DATA":
					if !slices.ContainsFunc(heads, func(h string) bool { return h[0] == f[0] }) {
						t.Errorf("%s before its head", f)
					}
					data[f[0]] += f
				}
			}
			if want := []string{"1 HEADERS, length 10, end false", "3 HEADERS, length 3, end false", "5 HEADERS, length 0, end"}; heads[0] != want[0] ||
				heads[1] != want[1] || heads[2][:len(want[2])] != want[2] {
				t.Errorf("%q", heads)
			}
		})
	}
}

// TestOpeningsWaitShortly: a request whose body does not come, or is held, delays the others for a moment only.
func TestOpeningsWaitShortly(t *testing.T) {
	t.Parallel()
	for _, held := range []bool{false, true} {
		k, next := newSlowly(t, !held)
		up := newBlocks()
		frames := request(up, 1, "4", 0)
		if held {
			frames = append(frames, appendFrame(nil, frameData, flagEndStream, 1, []byte("hold"))...)
		}
		for stream := uint32(3); stream < 43; stream += 2 {
			frames = append(append(frames, request(up, stream, "4", 0)...), appendFrame(nil, frameData, 0, stream, []byte("x"))...)
		}
		start := time.Now()
		if _, err := k.client.Write(frames); err != nil {
			t.Fatal(err)
		}
		var heads []string
		for len(heads) < 20 {
			if f := next(); len(f) > 10 && f[2] != 'D' && f[3] != 'D' {
				heads = append(heads, f)
			}
		}
		if took := time.Since(start); took < openingDelay/2 || took > 10*openingDelay {
			t.Errorf("the heads came after %v", took)
		}
		if heads[0] != "1 HEADERS, no length, end false" {
			t.Errorf("%q", heads)
		}
	}
}

// TestWaitingRequestIsReset: the server learns of a request that the client resets while it waits, and the next one is
// not delayed.
func TestWaitingRequestIsReset(t *testing.T) {
	t.Parallel()
	for _, passes := range []bool{false, true} {
		k, next := newSlowly(t, passes)
		up := newBlocks()
		frames := append(request(up, 1, "10", 0), appendFrame(nil, frameData, 0, 1, []byte("hello"))...)
		frames = append(frames, request(up, 3, "3", 0)...)
		frames = append(append(frames, resetFrame(1, codeCancel)...), appendFrame(nil, frameData, flagEndStream, 3, []byte("two"))...)
		if _, err := k.client.Write(frames); err != nil {
			t.Fatal(err)
		}
		got := []string{next(), next(), next()}
		if got[0] != "1 HEADERS, no length, end false" || got[1] != "1 RST_STREAM" || got[2] != "3 HEADERS, length 3, end false" {
			t.Errorf("%q", got)
		}
	}
}
