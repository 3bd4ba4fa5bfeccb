package pcapng

import (
	"bytes"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"unwire/captures"
)

const (
	// h2MaxFrame and h2MaxWindow are the HTTP/2 settings that both sides announce: so large that flow
	// control never blocks.
	h2MaxFrame  = 1<<24 - 1
	h2MaxWindow = 1<<31 - 1
	// h2Split is the size in bytes above which a chunk is written as several DATA frames.
	h2Split = 4 << 20
)

// An http2Writer is the protocolWriter for an HTTP/2 connection.
type http2Writer struct {
	// link writes the packets of the connection.
	link *link
	// sides are the encoders of the client and the server, indexed by the direction in which each sends.
	sides [2]http2Side
	// next is the id of the next HTTP/2 stream to be opened.
	next uint32
}

// An http2Side encodes the HTTP/2 frames that one side sends. Each frame is one write to the link.
type http2Side struct {
	// out receives the bytes of each encoded frame before they are written to the connection.
	out bytes.Buffer
	// framer encodes HTTP/2 frames.
	framer *http2.Framer

	// block receives the bytes of the header block that is being encoded.
	block bytes.Buffer
	// hpack encodes header fields; it keeps the dynamic table of the direction.
	hpack *hpack.Encoder
}

// newHTTP2 writes the preface and settings of both sides of an HTTP/2 connection, and returns its writer.
func newHTTP2(l *link) (*http2Writer, error) {
	s := &http2Writer{link: l, next: 1}
	for dir := range s.sides {
		side := &s.sides[dir]
		side.framer, side.hpack = http2.NewFramer(&side.out, nil), hpack.NewEncoder(&side.block)
	}

	// Both sides announce their settings and acknowledge those of the other.
	s.sides[captures.Up].out.WriteString(http2.ClientPreface)
	for _, dir := range []captures.Direction{captures.Up, captures.Down} {
		f := s.sides[dir].framer
		settings := []http2.Setting{{ID: http2.SettingMaxFrameSize, Val: h2MaxFrame}, {ID: http2.SettingInitialWindowSize, Val: h2MaxWindow}}
		if dir == captures.Down {
			settings = append(settings, http2.Setting{ID: http2.SettingEnableConnectProtocol, Val: 1})
		}
		err := f.WriteSettings(settings...)
		if err == nil {
			err = f.WriteWindowUpdate(0, h2MaxWindow-65535)
		}
		if err := s.send(dir, err); err != nil {
			return nil, err
		}
	}
	for _, dir := range []captures.Direction{captures.Up, captures.Down} {
		if err := s.send(dir, s.sides[dir].framer.WriteSettingsAck()); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// send writes the encoded frames of a direction as packets, unless err, the result of encoding them, is set.
func (s *http2Writer) send(dir captures.Direction, err error) error {
	if err != nil {
		return err
	}
	_, err = s.link.ends[dir].Write(s.sides[dir].out.Bytes())
	s.sides[dir].out.Reset()
	return err
}

// request opens a stream and writes the request headers.
func (s *http2Writer) request(t *exchangeWriter) error {
	scheme, authority, path := splitURL(t.ex.URL)
	pseudo := []hpack.HeaderField{{Name: ":method", Value: t.ex.Method}, {Name: ":scheme", Value: scheme}, {Name: ":authority", Value: authority}, {Name: ":path", Value: path}}
	if isExtendedConnect(t.ex) {
		pseudo = append(pseudo, hpack.HeaderField{Name: ":protocol", Value: t.ex.RequestHeaders.Get(":protocol")})
	}
	t.stream = s.stream()
	end := t.ex.BytesUp == 0 && t.clientEnded() && len(t.ex.RequestTrailers) == 0
	t.done[captures.Up] = end
	return s.headers(captures.Up, t.stream, pseudo, t.ex.RequestHeaders, end)
}

// stream returns the id for a new stream.
func (s *http2Writer) stream() uint32 {
	id := s.next
	s.next += 2
	return id
}

// response writes the response headers.
func (s *http2Writer) response(t *exchangeWriter) error {
	// The request was not captured.
	if t.stream == 0 {
		t.stream = s.stream()
	}
	end := t.ex.BytesDown == 0 && !t.isTunnel() && t.ex.Outcome == captures.Complete && len(t.ex.ResponseTrailers) == 0
	t.done[captures.Down] = end
	return s.headers(captures.Down, t.stream, []hpack.HeaderField{{Name: ":status", Value: strconv.Itoa(t.ex.Status)}}, t.ex.ResponseHeaders, end)
}

// headers writes a header block as a HEADERS frame. pseudo are the pseudo-header fields; end sets END_STREAM.
func (s *http2Writer) headers(dir captures.Direction, id uint32, pseudo []hpack.HeaderField, fields captures.Headers, end bool) error {
	side := &s.sides[dir]
	side.block.Reset()
	for _, f := range pseudo {
		if err := side.hpack.WriteField(f); err != nil {
			return err
		}
	}
	for _, f := range fields {
		if strings.HasPrefix(f.Name, ":") {
			continue
		}
		if err := side.hpack.WriteField(hpack.HeaderField{Name: strings.ToLower(f.Name), Value: f.Value}); err != nil {
			return err
		}
	}
	return s.send(dir, side.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, BlockFragment: side.block.Bytes(), EndHeaders: true, EndStream: end,
	}))
}

// data writes bytes of a body as DATA frames. last sets END_STREAM on the last frame.
func (s *http2Writer) data(t *exchangeWriter, dir captures.Direction, p []byte, last bool) error {
	if t.stream == 0 {
		t.stream = s.stream()
	}
	for len(p) > 0 {
		n := min(len(p), h2Split)
		if err := s.send(dir, s.sides[dir].framer.WriteData(t.stream, last && n == len(p), p[:n])); err != nil {
			return err
		}
		p = p[n:]
	}
	t.done[dir] = t.done[dir] || last
	return nil
}

// end ends a direction of the stream with its trailers, or with an empty DATA frame if it has none.
func (s *http2Writer) end(t *exchangeWriter, dir captures.Direction) error {
	if fields := t.trailers(dir); len(fields) > 0 {
		return s.headers(dir, t.stream, nil, fields, true)
	}
	return s.send(dir, s.sides[dir].framer.WriteData(t.stream, true, nil))
}

// abort resets the stream from the side by, with the HTTP/2 error code that the exchange's error text names.
func (s *http2Writer) abort(t *exchangeWriter, by captures.Direction) error {
	code := http2.ErrCodeCancel
	if by == captures.Down {
		code = http2.ErrCodeInternal
	}
	for c := http2.ErrCodeNo; c <= http2.ErrCodeHTTP11Required; c++ {
		if strings.Contains(t.ex.Error, c.String()) {
			code = c
		}
	}
	if t.stream == 0 {
		// There is no stream to reset.
		return nil
	}
	return s.send(by, s.sides[by].framer.WriteRSTStream(t.stream, code))
}

// splitURL splits a URL into its parts without normalising their text.
func splitURL(text string) (scheme, authority, path string) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return "https", "", text
	}
	at := strings.IndexAny(rest, "/?")
	if at < 0 {
		return scheme, rest, "/"
	}
	authority, path = rest[:at], rest[at:]
	if path[0] == '?' {
		path = "/" + path
	}
	if u, err := url.Parse(text); err == nil && u.User != nil {
		// User information is not part of a request.
		authority = u.Host
	}
	return scheme, authority, path
}
