package mitm

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"unwire/decode/envelope"
)

// editRules edit a field of every body that has the texts of edits in it: in protobuf and in JSON.
const editRules = `rules:
  - {name: grow, match: 'path:1="grow me"', set: '1=%[1]s'}
  - {name: grow JSON, match: 'path:t="grow me"', set: 't=%[1]s'}
  - {name: shrink, match: 'path:1="shrink this text"', set: 1=x}
  - {name: shrink JSON, match: 'path:t="shrink this text"', set: t=x}
`

// grown is what "grow me" becomes.
var grown = "it " + strings.Repeat("has grown ", 2000) + "a lot"

// editWays are the lanes of TestMatrixWithEdits.
var editWays = []way{
	{name: directWay},
	{name: proxyWay, proxied: true},
	{name: reverseWay},
	{name: reverseTLSWay},
	{name: socksWay},
	{name: transparentWay},
	{name: "by-http", proxied: true, upstream: "http"},
}

// The bodies of TestMatrixWithEdits: each has a text in a field.
var editBodies = []struct {
	name, contentType string
	of                func(text string) []byte
}{
	{"JSON", "application/json", func(text string) []byte { return fmt.Appendf(nil, `{ "a": [1], "t": %q }`, text) }},
	{"protobuf", "application/proto", oneField},
	{"envelopes", "application/connect+proto", threeEnvelopes},
	{"gRPC", "application/grpc+proto", threeEnvelopes},
	{"gRPC-Web", "application/grpc-web+proto", threeEnvelopes},
	{"events", "text/event-stream", func(text string) []byte {
		return fmt.Appendf(nil, "event: a\ndata: {\"t\":\"before\"}\n\ndata: {\"t\":%q}\n\n", text)
	}},
}

// threeEnvelopes are three envelopes, with a text in the one in the middle.
func threeEnvelopes(text string) (out []byte) {
	for _, one := range []string{"before", text, "after"} {
		out = envelope.Append(out, 0, oneField(one))
	}
	return out
}

// editRow sends a body, or asks for one, with a text in it, and returns what client and server have seen.
type editRow struct {
	name string
	run  func(ctx context.Context, l *lane, h2 bool, contentType string, body []byte) (*http.Response, error)
}

// editRows are the ways in which a body is sent.
var editRows = []editRow{
	{"POST", sendEdited("POST", false, nil)},
	{"GET with a body", sendEdited("GET", false, nil)},
	{"PUT of unknown length", sendEdited("PUT", true, nil)},
	{"request trailers", sendEdited("POST", true, http.Header{"X-Up": {"late"}})},
	{"expect-continue", func(ctx context.Context, l *lane, h2 bool, contentType string, body []byte) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, "POST", l.base+"/echo", io.MultiReader(bytes.NewReader(body)))
		if err != nil {
			return nil, err
		}
		req.Header = http.Header{"Content-Type": {contentType}, "Expect": {"100-continue"}}
		return l.client(h2).Do(req)
	}},
	{"answer", askEdited("")},
	{"answer of unknown length", askEdited("unsized")},
	{"answer with trailers", askEdited("trailers")},
	{"gzip", askEdited("gzip")},
	{"error", askEdited("error")},
}

// sendEdited returns the function of a row that sends a body to the echo of the server.
func sendEdited(method string, unsized bool, trailers http.Header) func(context.Context, *lane, bool, string, []byte) (*http.Response, error) {
	return func(ctx context.Context, l *lane, h2 bool, contentType string, body []byte) (*http.Response, error) {
		r := io.Reader(bytes.NewReader(body))
		if unsized {
			r = io.MultiReader(r)
		}
		req, err := http.NewRequestWithContext(ctx, method, l.base+"/echo", r)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Content-Type", contentType)
		req.Trailer = trailers
		return l.client(h2).Do(req)
	}
}

// askEdited returns the function of a row that asks the server for a body.
func askEdited(how string) func(context.Context, *lane, bool, string, []byte) (*http.Response, error) {
	return func(ctx context.Context, l *lane, h2 bool, contentType string, body []byte) (*http.Response, error) {
		// The wish is in a header, which no rule changes.
		req, err := http.NewRequestWithContext(ctx, "GET", l.base+"/answer", nil)
		if err != nil {
			return nil, err
		}
		req.Header = http.Header{"X-How": {how}, "X-Type": {contentType}, "X-Body": {fmt.Sprintf("%x", body)}}
		return l.client(h2).Do(req)
	}
}

// answer answers with the body that the request wants.
func (o *matrixOrigin) answer(w http.ResponseWriter, r *http.Request) {
	var body []byte
	_, _ = fmt.Sscanf(r.Header.Get("X-Body"), "%x", &body)
	h, how := w.Header(), r.Header.Get("X-How")
	h.Set("Content-Type", r.Header.Get("X-Type"))
	switch how {
	case "gzip":
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = z.Write(body)
		_ = z.Close()
		body = packed.Bytes()
		h.Set("Content-Encoding", "gzip")
		flush(w)
	case "unsized":
		flush(w)
	case "trailers":
		h.Set("Trailer", "X-Announced")
		flush(w)
		defer func() { h["X-Announced"] = []string{"1", "2"} }()
	case "error":
		h.Set("Content-Length", fmt.Sprint(len(body)))
		w.WriteHeader(http.StatusConflict)
	default:
		h.Set("Content-Length", fmt.Sprint(len(body)))
	}
	// The body comes in pieces.
	_, _ = w.Write(body[:len(body)/2])
	flush(w)
	_, _ = w.Write(body[len(body)/2:])
}

// TestMatrixWithEdits sends bodies in all ways through rules that edit one field. Client and server see what they see
// directly if the body is sent edited: the declared lengths and the trailers are right, and nothing else is changed.
func TestMatrixWithEdits(t *testing.T) {
	t.Parallel()
	origin := newMatrixOrigin(t)
	who := newIdentity(t)
	ways := append([]way(nil), editWays...)
	for i := range ways {
		if ways[i].name != directWay {
			ways[i].rules = fmt.Sprintf(editRules, grown)
		}
	}
	lanes := newLanes(t, origin, who, ways)
	for _, row := range editRows {
		for _, body := range editBodies {
			// Streams that are compressed as a whole are not changed.
			if body.contentType != "application/json" && body.contentType != "application/proto" && row.name == "gzip" {
				continue
			}
			t.Run(row.name+"/"+body.name, func(t *testing.T) {
				t.Parallel()
				for _, h2 := range []bool{false, true} {
					for text, edited := range map[string]string{"grow me": grown, "shrink this text": "x"} {
						var want string
						for i, l := range lanes {
							ctx, cancel := context.WithTimeout(t.Context(), matrixTimeout)
							sent := body.of(text)
							if i == 0 {
								sent = body.of(edited)
							}
							res, err := row.run(ctx, l, h2, body.contentType, sent)
							got := editTranscript(res, err)
							cancel()
							switch {
							case i == 0 && !strings.Contains(got, edited):
								t.Fatalf("directly: %s", got)
							case i == 0:
								want = got
							case got != want:
								t.Errorf("%s, HTTP/2 %v:\n%.1500s\nwant\n%.1500s", l.name, h2, got, want)
							}
						}
					}
				}
			})
		}
	}
}

// TestWebSocketMatrixWithEdits is TestMatrixWithEdits for the messages of a WebSocket, compressed and not.
func TestWebSocketMatrixWithEdits(t *testing.T) {
	t.Parallel()
	origin := newMatrixOrigin(t)
	ways := append([]way(nil), editWays...)
	for i := range ways {
		if ways[i].name != directWay {
			ways[i].rules = fmt.Sprintf(editRules, grown)
		}
	}
	lanes := newLanes(t, origin, newIdentity(t), ways)
	for _, mode := range []websocket.CompressionMode{websocket.CompressionDisabled, websocket.CompressionContextTakeover, websocket.CompressionNoContextTakeover} {
		t.Run(fmt.Sprint("mode ", mode), func(t *testing.T) {
			t.Parallel()
			var want string
			for i, l := range lanes {
				grow, shrink := "grow me", "shrink this text"
				if i == 0 {
					grow, shrink = grown, "x"
				}
				var got strings.Builder
				ctx, cancel := context.WithTimeout(t.Context(), matrixTimeout)
				c, _, err := websocket.Dial(ctx, l.base+"/websocket", &websocket.DialOptions{HTTPClient: l.client(false), CompressionMode: mode, CompressionThreshold: 1})
				if err != nil {
					t.Fatal(l.name, err)
				}
				c.SetReadLimit(-1)
				for _, text := range []string{"before", grow, "between", shrink, "after"} {
					_ = c.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `{ "a": [1], "t": %q }`, text))
					_ = c.Write(ctx, websocket.MessageBinary, oneField(text))
					for range 2 {
						kind, p, err := c.Read(ctx)
						fmt.Fprintf(&got, "%v %q %v\n", kind, p, err)
					}
				}
				_ = c.CloseNow()
				cancel()
				switch {
				case i == 0 && strings.Count(got.String(), grown) != 2:
					t.Fatalf("directly: %s", got.String())
				case i == 0:
					want = got.String()
				case got.String() != want:
					t.Errorf("%s:\n%.1500s\nwant\n%.1500s", l.name, got.String(), want)
				}
			}
		})
	}
}

// editTranscript is transcript with all of the body.
func editTranscript(res *http.Response, err error) string {
	if err != nil {
		return "no answer: " + inWords(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	res.Header.Del("Date")
	if res.Header.Get("Content-Encoding") == "gzip" {
		// Compressors differ, so only the content is compared.
		z, zerr := gzip.NewReader(bytes.NewReader(body))
		if zerr != nil {
			return zerr.Error()
		}
		if body, zerr = io.ReadAll(z); zerr != nil {
			return zerr.Error()
		}
	}
	return fmt.Sprintf("%s %s %v length %d encoding %v\nbody %d <%s> %s\ntrailer %v", res.Proto, res.Status, res.Header,
		res.ContentLength, res.TransferEncoding, len(body), body, inWords(err), res.Trailer)
}
