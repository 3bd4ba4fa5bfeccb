package replay

import (
	"bytes"
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"unwire/captures"
	"unwire/decode/envelope"
)

// An ender is a server that speaks HTTP/2 by hand, and ends an answer as no
// library would.
func ender(t *testing.T, end func(f *http2.Framer, stream uint32, headers func(...string) []byte)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done, over := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(over); _ = ln.Close(); <-done })
	go func() {
		defer close(done)
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		go func() { <-over; _ = conn.Close() }() // the client may keep it
		if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		f := http2.NewFramer(conn, conn)
		_ = f.WriteSettings()
		for {
			fr, err := f.ReadFrame()
			if err != nil {
				return
			}
			switch fr := fr.(type) {
			case *http2.SettingsFrame:
				if !fr.IsAck() {
					_ = f.WriteSettingsAck()
				}
			case *http2.HeadersFrame:
				end(f, fr.StreamID, func(fields ...string) []byte {
					var b bytes.Buffer
					h := hpack.NewEncoder(&b)
					for i := 0; i < len(fields); i += 2 {
						_ = h.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}) // to memory
					}
					return b.Bytes()
				})
				_, _ = io.Copy(io.Discard, conn)
				return
			}
		}
	}()
	return "http://" + ln.Addr().String()
}

// However a server ends, what it said is told from what we make of it.
func TestHowAServerEnds(t *testing.T) {
	message := envelope.Append(nil, 0, []byte("\x0a\x05hello"))
	headers := func(media string) func(h func(...string) []byte) []byte {
		return func(h func(...string) []byte) []byte { return h(":status", "200", "content-type", media) }
	}
	stream := headers("application/connect+proto")
	for _, c := range []struct {
		name, media string
		end         func(f *http2.Framer, id uint32, h func(...string) []byte)
		comparison  Comparison
		origin      Origin
		code, says  string
	}{
		{"goaway at once", "application/connect+proto", func(f *http2.Framer, _ uint32, _ func(...string) []byte) {
			_ = f.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, []byte("too many"))
		}, Rejected, FromLocal, "unavailable", "GOAWAY"},
		{"goaway in an answer", "application/connect+proto", func(f *http2.Framer, id uint32, h func(...string) []byte) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: stream(h), EndHeaders: true})
			_ = f.WriteData(id, false, message)
			_ = f.WriteGoAway(id, http2.ErrCodeNo, nil)
			_ = f.WriteData(id, true, envelope.Append(nil, envelope.EndStream, []byte("{}")))
		}, Same, FromServer, "ok", ""},
		{"reset", "application/connect+proto", func(f *http2.Framer, id uint32, h func(...string) []byte) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: stream(h), EndHeaders: true})
			_ = f.WriteData(id, false, message)
			_ = f.WriteRSTStream(id, http2.ErrCodeEnhanceYourCalm)
		}, Differs, FromLocal, "unavailable", "ENHANCE_YOUR_CALM"},
		{"no end of stream", "application/connect+proto", func(f *http2.Framer, id uint32, h func(...string) []byte) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: stream(h), EndHeaders: true})
			_ = f.WriteData(id, true, message)
		}, Differs, FromLocal, "unavailable", "the answer has no status: its end-of-stream message or trailers are missing"},
		{"trailers only", "application/grpc", func(f *http2.Framer, id uint32, h func(...string) []byte) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: h(":status", "200", "content-type", "application/grpc", "grpc-status", "7", "grpc-message", "not%20you"), EndHeaders: true, EndStream: true})
		}, Rejected, FromServer, "permission_denied", "not you"},
		{"trailers", "application/grpc", func(f *http2.Framer, id uint32, h func(...string) []byte) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: headers("application/grpc")(h), EndHeaders: true})
			_ = f.WriteData(id, false, message)
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: h("grpc-status", "0"), EndHeaders: true, EndStream: true})
		}, Same, FromServer, "ok", ""},
		{"trailers without a status", "application/grpc", func(f *http2.Framer, id uint32, h func(...string) []byte) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: headers("application/grpc")(h), EndHeaders: true})
			_ = f.WriteData(id, true, message)
		}, Differs, FromLocal, "unavailable", "the answer has no status: its end-of-stream message or trailers are missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			was := message
			if strings.HasPrefix(c.media, "application/connect") {
				was = envelope.Append(bytes.Clone(message), envelope.EndStream, []byte("{}"))
			}
			ex := captures.Exchange{
				Method: "POST", URL: ender(t, c.end) + "/test.v1.Test/Count", HTTP: "2",
				RequestHeaders:  captures.Headers{{Name: "content-type", Value: c.media}, {Name: "te", Value: "trailers"}},
				ResponseHeaders: captures.Headers{{Name: "content-type", Value: c.media}},
			}
			if c.media == "application/grpc" {
				ex.ResponseTrailers = captures.Headers{{Name: "grpc-status", Value: "0"}}
			}
			store, id := written(t, ex, up(message), down(was))
			r := send(t, store, id, settings{})
			if r.Comparison != c.comparison || r.Origin != c.origin || r.Code != c.code || !strings.Contains(r.Message, c.says) {
				t.Errorf("%s %s %s %q %+v", r.Comparison, r.Origin, r.Code, r.Message, r.Diff)
			}
		})
	}
}

// An error may be compressed like any answer.
func TestCompressedError(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("content-type", "application/json")
		w.Header().Set("content-encoding", "gzip")
		w.WriteHeader(http.StatusNotFound)
		z := gzip.NewWriter(w)
		_, _ = z.Write([]byte(`{"code":"not_found","message":"nothing of that name"}`))
		_ = z.Close()
	})
	store, id := written(t, captures.Exchange{
		Method: "POST", URL: s.URL + "/test.v1.Test/Say", HTTP: "2",
		RequestHeaders:  captures.Headers{{Name: "content-type", Value: "application/proto"}, {Name: "accept-encoding", Value: "gzip"}},
		ResponseHeaders: captures.Headers{{Name: "content-type", Value: "application/proto"}},
	}, up([]byte("\x0a\x01x")), down([]byte("\x0a\x01y")))
	if r := send(t, store, id, settings{}); r.Comparison != Rejected || r.Origin != FromServer || r.Code != "not_found" || r.Message != "nothing of that name" {
		t.Errorf("%+v", r)
	}
}
