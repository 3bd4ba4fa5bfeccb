package har

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/captures/profile"
	"unwire/captures/transfer"
	"unwire/decode"
	"unwire/decode/envelope"
)

// Limits for writing one HAR entry, in bytes.
const (
	// defaultMaxBody is the default of Options.MaxBody.
	defaultMaxBody = 32 << 20

	// maxTreeBytes limits the total payload of the frames of one exchange that are written with their decoded
	// fields; further frames are written without.
	maxTreeBytes = 1 << 20
)

// Options are the options of Export. The zero value works.
type Options struct {
	// Creator is the version of the writing program. Default: "unknown".
	Creator string

	// MaxBody is the size in bytes above which the bodies of an exchange are omitted. Default: 32 MiB.
	MaxBody int64

	// Type returns the message type for the frames of a call in one direction, which supplies field
	// names. If Type is nil, exported fields have no names.
	Type func(call decode.Call, dir captures.Direction) protoreflect.MessageDescriptor
}

// A Result contains the counts of a HAR export.
type Result struct {
	// Exchanges is the number of exported exchanges.
	Exchanges int
	// BodiesOmitted is the number of exchanges exported without bodies because these were too large.
	BodiesOmitted int
	// NotHTTP counts connections without HTTP, which are not written.
	NotHTTP int
}

// Export writes all exchanges of a capture to w as one HAR file.
//
// Limits: one entry at a time is in memory. Frames are written with their fields until those of an exchange
// exceed 1 MiB. Errors: those of src and of w. The output is then incomplete.
func Export(ctx context.Context, w io.Writer, src transfer.Source, o Options) (Result, error) {
	if o.MaxBody <= 0 {
		o.MaxBody = defaultMaxBody
	}
	if o.Creator == "" {
		o.Creator = "unknown"
	}
	var done Result
	out := bufio.NewWriterSize(w, 1<<16)
	creator, err := json.Marshal(o.Creator)
	if err != nil {
		return done, fmt.Errorf("har: %w", err)
	}

	// Entries are written one by one, so the object around them is written by hand.
	fmt.Fprintf(out, `{"log":{"version":"1.2","creator":{"name":"unwire","version":%s},"entries":[`, creator)
	s, err := indexWebSockets(ctx, src)
	if err != nil {
		return done, fmt.Errorf("har: %w", err)
	}
	entries := 0
	for ex, err := range src.Exchanges(ctx) {
		var e *entry
		if err == nil {
			e, err = o.entryOf(ctx, s, ex, &done)
		}
		if err == nil && e != nil {
			if entries++; entries > 1 {
				// Flush returns the error.
				_ = out.WriteByte(',')
			}
			err = writeEntry(out, e)
		}
		if err != nil {
			return done, fmt.Errorf("har: the export failed after %d entries: %w", entries, err)
		}
	}
	_, _ = out.WriteString("]}}\n")
	if err := out.Flush(); err != nil {
		return done, fmt.Errorf("har: %w", err)
	}
	return done, nil
}

// writeEntry writes an entry. The fields of its frames are decoded while they are written.
func writeEntry(out *bufio.Writer, e *entry) error {
	var trees decode.DeferredTrees
	for x := e.Unwire; x != nil; x = x.WebSocket {
		for i := range x.Frames {
			x.Frames[i].DeferTrees(&trees)
		}
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return err
	}
	return trees.WriteJSON(text.Bytes(), func(piece []byte) error {
		_, err := out.Write(piece)
		return err
	})
}

// entryOf returns the HAR entry of an exchange and counts it in done. It returns nil if the exchange has no
// entry of its own: a WebSocket that is part of its handshake's entry, or a connection without HTTP.
func (o *Options) entryOf(ctx context.Context, s *webSocketIndex, ex *captures.Exchange, done *Result) (e *entry, err error) {
	switch ex.Transport {
	default:
		done.NotHTTP++
		return nil, nil
	case captures.WebSocket:
		done.Exchanges++
		if within, err := s.hasEntry(ctx, ex.ID); within || err != nil {
			return nil, err
		}

		// The handshake is not in the capture, so the entry describes a plausible one.
		e = o.emptyEntry(ex)
		e.Request.Method, e.Response.Status = http.MethodGet, http.StatusSwitchingProtocols
		e.Timings = timings{Blocked: -1, DNS: -1, Connect: -1, SSL: -1, Receive: millis(ex.Duration)}
		e.Unwire, err = o.putWebSocket(ctx, s, e, ex)
	case captures.HTTP:
		done.Exchanges++
		if e, err = o.entry(ctx, s, ex); err != nil {
			return nil, err
		}
		if e.Unwire.Rewritten, err = s.src.Rewritten(ctx, ex.ID); err != nil {
			return nil, err
		}
		opened, err := s.openedBy(ctx, ex.ID)
		if err != nil {
			return nil, err
		}

		// The WebSocket is part of its handshake's entry.
		if opened != nil {
			if e.Unwire.WebSocket, err = o.putWebSocket(ctx, s, e, opened); err != nil {
				return nil, err
			}
			e.Request.URL, e.Unwire.URL = webSocketURL(ex.URL), ex.URL
			if e.Unwire.WebSocket.Omitted {
				done.BodiesOmitted++
			}
		}
	}
	if err == nil && e.Unwire.Omitted {
		done.BodiesOmitted++
	}
	return e, err
}

// A loadedExchange is an exchange with all its chunks in memory.
type loadedExchange struct {
	// ex is the exchange without its body.
	ex *captures.Exchange
	// chunks are the bytes of both bodies with their times, in the order of arrival; nil if they are too
	// large.
	chunks []captures.Chunk

	// bodies are the request and response bodies, indexed by captures.Direction.
	bodies [2][]byte
	// tooLarge means that the bodies exceed the memory limit and were not loaded.
	tooLarge bool

	// profile is the profile of the exported capture, for decoding.
	profile *profile.Profile
}

// loadExchange loads an exchange with its chunks. If a body is larger than limit bytes, it loads no chunks and
// sets tooLarge.
func loadExchange(ctx context.Context, src transfer.Source, ex *captures.Exchange, limit int64) (*loadedExchange, error) {
	h := &loadedExchange{ex: ex, profile: src.Profile(), tooLarge: ex.BytesUp > limit || ex.BytesDown > limit}
	if h.tooLarge {
		return h, nil
	}
	for c, err := range src.Chunks(ctx, ex.ID, 0) {
		if err != nil {
			return nil, err
		}
		h.chunks = append(h.chunks, c)
		h.bodies[c.Dir] = append(h.bodies[c.Dir], c.Data...)
		if int64(len(h.bodies[c.Dir])) > limit {
			return &loadedExchange{ex: ex, profile: src.Profile(), tooLarge: true}, nil
		}
	}
	return h, nil
}

// entry converts an HTTP exchange to a HAR entry.
func (o *Options) entry(ctx context.Context, s *webSocketIndex, ex *captures.Exchange) (*entry, error) {
	h, err := loadExchange(ctx, s.src, ex, o.MaxBody)
	if err != nil {
		return nil, err
	}
	x, err := o.extension(ctx, h, s.relations)
	if err != nil {
		return nil, err
	}
	e := o.emptyEntry(ex)
	e.Timings, e.Unwire = h.timings(), x
	h.putBodies(e, x)
	return e, nil
}

// emptyEntry returns the HAR entry of an exchange without bodies, timings and extension.
func (o *Options) emptyEntry(ex *captures.Exchange) *entry {
	e := &entry{
		StartedDateTime: ex.Started.Format("2006-01-02T15:04:05.000Z07:00"), Time: millis(ex.Duration),
		Request: request{
			Method: ex.Method, URL: ex.URL, HTTPVersion: "HTTP/" + ex.HTTP, Cookies: requestCookies(ex.RequestHeaders),
			Headers: fieldsOf(ex.RequestHeaders), QueryString: queryOf(ex.URL), HeadersSize: -1, BodySize: number(ex.BytesUp),
		},
		Response: response{
			Status: number(ex.Status), StatusText: http.StatusText(ex.Status), HTTPVersion: "HTTP/" + ex.HTTP,
			Cookies: responseCookies(ex.ResponseHeaders), Headers: fieldsOf(ex.ResponseHeaders),
			RedirectURL: ex.ResponseHeaders.Get("location"), HeadersSize: -1, BodySize: number(ex.BytesDown),
		},
	}
	if ip, _, err := net.SplitHostPort(ex.Server); err == nil && net.ParseIP(ip) != nil {
		e.ServerIPAddress = ip
	}
	return e
}

// putBodies puts the bodies into the standard members of the HAR entry, decompressed. If a body was compressed
// on the wire, the compressed form is put into the extension x.
func (h *loadedExchange) putBodies(e *entry, x *extension) {
	e.Response.Content.MimeType = h.ex.ResponseHeaders.Get("content-type")
	if h.tooLarge {
		e.Response.Content.Size, e.Response.Content.Comment = number(h.ex.BytesDown), "left out: too large"
		if h.ex.BytesUp > 0 {
			e.Request.PostData = &postData{MimeType: h.ex.RequestHeaders.Get("content-type"), Comment: "left out: too large"}
		}
		return
	}

	// The request's body is written as sent.
	if up := h.bodies[captures.Up]; len(up) > 0 {
		p := &postData{MimeType: h.ex.RequestHeaders.Get("content-type")}
		p.Text, p.UnwireEncoding = jsonText(up)
		e.Request.PostData = p
	}

	// HAR wants the response's body decompressed.
	wire := h.bodies[captures.Down]
	plain := wire
	if codec := h.ex.ResponseHeaders.Get("content-encoding"); codec != "" && len(wire) > 0 {
		if p, err := envelope.Decompress(codec, wire, defaultMaxBody); err == nil && !strings.EqualFold(codec, "identity") {
			plain, x.Down = p, wire
			e.Response.Content.Compression = number(len(plain) - len(wire))
		}
	}
	c := &e.Response.Content
	c.Size = number(len(plain))
	c.Text, c.Encoding = jsonText(plain)
}

// jsonText returns a body as a JSON string with its HAR encoding: "" for text, which stays unchanged, or
// "base64" for binary data.
func jsonText(b []byte) (text, encoding string) {
	binary := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' }
	if s := string(b); utf8.ValidString(s) && !strings.ContainsFunc(s, binary) {
		return s, ""
	}
	return base64.StdEncoding.EncodeToString(b), "base64"
}

// timings computes the HAR timings from the times of the chunks: until the request was sent, until the response
// began, and until it ended. In a bidirectional stream, the request counts as sent when the response begins.
func (h *loadedExchange) timings() timings {
	send, wait := time.Duration(0), time.Duration(-1)
	for _, c := range h.chunks {
		if c.Dir == captures.Down {
			wait = c.T
			break
		}
		send = c.T
	}

	// The phases must not be negative, and add up to the duration.
	total := h.ex.Duration
	send = min(send, total)
	if wait < 0 {
		wait = total
	}
	wait = min(max(wait, send), total)
	return timings{Blocked: -1, DNS: -1, Connect: -1, SSL: -1, Send: millis(send), Wait: millis(wait - send), Receive: millis(total - wait)}
}

// queryOf returns the query parameters of the URL raw, in order.
func queryOf(raw string) []header {
	out := []header{}
	u, err := url.Parse(raw)
	if err != nil || u.RawQuery == "" {
		return out
	}
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		name, value, _ := strings.Cut(part, "=")
		out = append(out, header{Name: unescape(name), Value: unescape(value)})
	}
	return out
}

// unescape decodes percent-encoding; text with invalid encoding is returned unchanged.
func unescape(s string) string {
	if u, err := url.QueryUnescape(s); err == nil {
		return u
	}
	return s
}

// requestCookies parses the cookies in the headers of a request.
func requestCookies(hs captures.Headers) []cookie {
	out := []cookie{}
	for _, h := range hs {
		if !strings.EqualFold(h.Name, "cookie") {
			continue
		}
		for part := range strings.SplitSeq(h.Value, ";") {
			if name, value, ok := strings.Cut(strings.TrimSpace(part), "="); ok {
				out = append(out, cookie{Name: name, Value: value})
			}
		}
	}
	return out
}

// responseCookies returns the cookies that a response sets. Their values are taken literally; net/http parses
// only the attributes.
func responseCookies(hs captures.Headers) []cookie {
	out := []cookie{}
	for _, h := range hs {
		if !strings.EqualFold(h.Name, "set-cookie") {
			continue
		}
		pair, attributes, _ := strings.Cut(h.Value, ";")
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		c := cookie{Name: name, Value: value}
		if p, err := http.ParseSetCookie("x=y;" + attributes); err == nil {
			c.Path, c.Domain, c.HTTPOnly, c.Secure = p.Path, p.Domain, p.HttpOnly, p.Secure
			if !p.Expires.IsZero() {
				c.Expires = p.Expires.UTC().Format(time.RFC3339)
			}
		}
		out = append(out, c)
	}
	return out
}
