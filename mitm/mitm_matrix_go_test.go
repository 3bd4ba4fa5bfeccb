package mitm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A goCheck is made by net/http's client, over HTTP/1 and HTTP/2.
type goCheck struct {
	name, want string
	run        func(t *testing.T, l *lane, h2 bool) string
}

func goChecks() []check {
	var out []check
	for _, c := range goCheckList() {
		for _, h2 := range []bool{false, true} {
			version := map[bool]string{false: "HTTP/1", true: "HTTP/2"}[h2]
			out = append(out, check{client: "go", name: c.name + ", " + version, want: c.want, run: func(t *testing.T, l *lane) string { return c.run(t, l, h2) }})
		}
	}
	return out
}

func goCheckList() []goCheck {
	send := func(method, path string, header http.Header, body func() io.Reader) func(*testing.T, *lane, bool) string {
		return func(t *testing.T, l *lane, h2 bool) string {
			var b io.Reader
			if body != nil {
				b = body()
			}
			return l.send(t, l.client(h2), method, path, header, b)
		}
	}
	text := func(s string) func() io.Reader { return func() io.Reader { return strings.NewReader(s) } }
	unsized := func(s string) func() io.Reader {
		return func() io.Reader { return io.MultiReader(strings.NewReader(s)) }
	}
	return []goCheck{
		{"GET", "GET /echo?q=1&r=%2F", send("GET", "/echo?q=1&r=%2F", nil, nil)},
		{"GET with a body", `body "b"`, send("GET", "/echo", nil, text("b"))},
		{"POST", `length 5, encoding [], body "hello"`, send("POST", "/echo", nil, text("hello"))},
		{"POST, empty", "length 0", send("POST", "/echo", nil, text(""))},
		{"PUT of unknown length", `length -1`, send("PUT", "/echo", nil, unsized("hello"))},
		{"unknown length, empty", `body ""`, send("PUT", "/echo", nil, unsized(""))},
		{"an odd method", "PROPFIND", send("PROPFIND", "/echo", nil, nil)},
		{"request fields, repeated", `["b" "a" ""]`, send("GET", "/repeated", http.Header{"X-Repeated": {"b", "a", ""}, "Cookie": {"x=1; y=2"}}, nil)},
		{"HEAD", "length 5", send("HEAD", "/length", nil, nil)},
		{"HEAD of an empty answer", "204", send("HEAD", "/status?code=204", nil, nil)},
		{"204", "204", send("GET", "/status?code=204", nil, nil)},
		{"304", "304", send("GET", "/status?code=304", nil, nil)},
		{"empty 200", "200", send("GET", "/status?code=200", nil, nil)},
		{"empty 500", "500", send("POST", "/status?code=500", nil, text("x"))},
		{"known length", "body 5 <fixed>", send("GET", "/length", nil, nil)},
		{"no type, no date", "body 7 <untyped>", send("GET", "/type", nil, nil)},
		{"range", "206", send("GET", "/range", http.Header{"Range": {"bytes=2-5"}}, nil)},
		{"large header sections", "X-Got:[204800]", send("GET", "/big-head?n=204800", http.Header{"X-Big": {strings.Repeat("a", 200<<10)}}, nil)},
		{"1000 header fields", "X-Many-999:[999]", send("GET", "/many-heads", manyFields(), nil)},
		{"gzip, as it is", `X-Asked:[gzip]`, send("GET", "/gzip", http.Header{"Accept-Encoding": {"gzip"}}, nil)},
		{"gzip, inflated by the client", "gzip gzip", transparentGzip},
		{"trailers", "trailer map[X-Announced:[1 2] X-Left-Out:[] X-Unannounced:[3]]", send("GET", "/trailers?body=1", nil, nil)},
		{"trailers without a body", "X-Announced:[1 2]", send("GET", "/trailers", nil, nil)},
		{"request trailers", "X-Up:[late]", requestTrailers},
		{"1xx", "103 map[Link:[</a>]]\n103 map[Link:[</b>]]", informational},
		{"headers before the body", "headers, then sent", headersFirst},
		{"lock-step", "8 rounds", matrixLockStep},
		{"early reply", `403`, earlyReply},
		{"half-close", `4 after "up" <nil>`, send("POST", "/after", nil, unsized("up"))},
		{"cut off in mid-body", "body 4 <half>", send("GET", "/cut", nil, nil)},
		{"cut off before the headers", `no answer`, send("GET", "/gone", nil, nil)},
		{"shorter than declared", "short, then an error: true", tooShort},
		{"cancel", "it ended", canceled},
		{"client's body fails", "its own error", failingBody},
		{"expect-continue, accepted", `body "sent"`, expectContinue("/echo")},
		{"expect-continue, refused", "read 0 of the body", expectContinue("/early")},
		{"connection reused", "reused false true true", reused},
		{"2 MB up", "2097152", send("POST", "/sum", nil, func() io.Reader {
			return io.LimitReader(repeat(bytes.Repeat([]byte("0123456789abcdef-"), 4096)), 2<<20)
		})},
		{"4 MB down", "body 4194304", send("GET", "/flood", nil, nil)},
		{"32 at once", "32 answers", manyAtOnce},
	}
}

func manyFields() http.Header {
	h := make(http.Header)
	for i := range 500 {
		h.Set(fmt.Sprintf("X-Field-%d", i), "v")
	}
	return h
}

func (l *lane) send(t *testing.T, c *http.Client, method, path string, header http.Header, body io.Reader) string {
	ctx, cancel := context.WithTimeout(t.Context(), matrixTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, l.base+path, body)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(req.Header, header)
	res, err := c.Do(req)
	return transcript(res, err)
}

var streamNumber = regexp.MustCompile(`stream ID \d+`)

// inWords makes an error comparable: without addresses, ports and numbers.
func inWords(err error) string {
	var urlErr interface{ Unwrap() error }
	if errors.As(err, &urlErr) && strings.Contains(err.Error(), "://") {
		err = urlErr.Unwrap()
	}
	if err == nil {
		return "<nil>"
	}
	return streamNumber.ReplaceAllString(err.Error(), "stream ID n")
}

// transcript writes down a response as its client sees it.
func transcript(res *http.Response, err error) string {
	if err != nil {
		return "no answer: " + inWords(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	h := res.Header.Clone()
	if h.Get("Date") != "" {
		h.Set("Date", "now")
	}
	return fmt.Sprintf("%s %s %v length %d encoding %v uncompressed %v\nbody %d <%.400s> %s\ntrailer %v", res.Proto, res.Status, h,
		res.ContentLength, res.TransferEncoding, res.Uncompressed, len(body), body, inWords(err), res.Trailer)
}

func transparentGzip(t *testing.T, l *lane, h2 bool) string {
	c := l.newClient(t, h2)
	c.Transport.(*http.Transport).DisableCompression = false
	return l.send(t, c, "GET", "/gzip", nil, nil)
}

func requestTrailers(t *testing.T, l *lane, h2 bool) string {
	req, _ := http.NewRequestWithContext(t.Context(), "POST", l.base+"/echo", io.MultiReader(strings.NewReader("body")))
	req.Trailer = http.Header{"X-Up": {"late"}}
	res, err := l.client(h2).Do(req)
	return transcript(res, err)
}

func informational(t *testing.T, l *lane, h2 bool) string {
	var hints strings.Builder
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		fmt.Fprintln(&hints, code, h)
		return nil
	}})
	req, _ := http.NewRequestWithContext(ctx, "GET", l.base+"/hints", nil)
	res, err := l.client(h2).Do(req)
	return hints.String() + transcript(res, err)
}

func headersFirst(t *testing.T, l *lane, h2 bool) string {
	pr, pw := io.Pipe()
	time.AfterFunc(matrixTimeout, func() { pw.CloseWithError(errors.New("too late")) })
	req, _ := http.NewRequestWithContext(t.Context(), "POST", l.base+"/first", pr)
	res, err := l.client(h2).Do(req)
	if err == nil {
		go func() {
			_, _ = io.WriteString(pw, "headers, then sent")
			pw.Close()
		}()
	}
	return transcript(res, err)
}

func matrixLockStep(t *testing.T, l *lane, h2 bool) string {
	ctx, cancel := context.WithTimeout(t.Context(), matrixTimeout)
	defer cancel()
	pr, pw := io.Pipe()
	defer pw.Close()
	req, _ := http.NewRequestWithContext(ctx, "POST", l.base+"/copy", pr)
	res, err := l.client(h2).Do(req)
	if err != nil {
		return "no answer: " + inWords(err)
	}
	defer res.Body.Close()
	got := make([]byte, 8)
	for i := range 8 {
		fmt.Fprintf(pw, "round %d\n", i)
		if _, err := io.ReadFull(res.Body, got); err != nil {
			return fmt.Sprintf("%d rounds, %v", i, err)
		}
	}
	pw.Close()
	rest, err := io.ReadAll(res.Body)
	return fmt.Sprintf("8 rounds, then %q %v", rest, err)
}

// earlyReply is there before the body has ended.
func earlyReply(t *testing.T, l *lane, h2 bool) string {
	ctx, cancel := context.WithTimeout(t.Context(), matrixTimeout)
	defer cancel()
	pr, pw := io.Pipe()
	defer pw.Close()
	defer context.AfterFunc(ctx, func() { pw.CloseWithError(ctx.Err()) })()
	go func() { _, _ = io.WriteString(pw, "a beginning") }()
	req, _ := http.NewRequestWithContext(ctx, "POST", l.base+"/early", pr)
	res, err := l.newClient(t, h2).Do(req) // its connection may end with it
	if err != nil {
		return "no answer: " + inWords(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	return fmt.Sprintf("%d %q %v", res.StatusCode, got, err)
}

// tooShort tells only that there is an error: which one, the client finds by
// itself when the stream ends cleanly, and the proxy never ends one so.
func tooShort(t *testing.T, l *lane, h2 bool) string {
	res, err := l.client(h2).Get(l.base + "/short")
	if err != nil {
		return "no answer: " + inWords(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return fmt.Sprintf("%d of %d: %s, then an error: %v", len(body), res.ContentLength, body, err != nil)
}

func canceled(t *testing.T, l *lane, h2 bool) string {
	ctx, cancel := context.WithCancel(t.Context())
	key := fmt.Sprintf("?key=%s-%v", l.name, h2)
	req, _ := http.NewRequestWithContext(ctx, "GET", l.base+"/wait"+key, nil)
	res, err := l.client(h2).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	got := make([]byte, 5)
	_, _ = io.ReadFull(res.Body, got)
	cancel()
	_, err = io.ReadAll(res.Body)
	return fmt.Sprintf("%s, %v\n%s", got, err, l.send(t, l.client(h2), "GET", "/ended"+key, nil, nil))
}

func failingBody(t *testing.T, l *lane, h2 bool) string {
	body := io.MultiReader(strings.NewReader("begun"), errorReader{errors.New("its own error")})
	return l.send(t, l.newClient(t, h2), "POST", "/echo", nil, body)
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }

func expectContinue(path string) func(*testing.T, *lane, bool) string {
	return func(t *testing.T, l *lane, h2 bool) string {
		c := l.newClient(t, h2)
		c.Transport.(*http.Transport).ExpectContinueTimeout = matrixTimeout
		body := bytes.NewReader([]byte("sent"))
		got := l.send(t, c, "POST", path, http.Header{"Expect": {"100-continue"}}, io.NopCloser(body))
		return fmt.Sprintf("%s\nread %d of the body", got, 4-body.Len())
	}
}

func reused(t *testing.T, l *lane, h2 bool) string {
	c := l.newClient(t, h2)
	var seen []bool
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { seen = append(seen, i.Reused) }})
	for _, path := range []string{"/length", "/status?code=204", "/flood"} {
		req, _ := http.NewRequestWithContext(ctx, "GET", l.base+path, nil)
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	return strings.NewReplacer("[", "", "]", "").Replace(fmt.Sprint("reused ", seen))
}

func manyAtOnce(t *testing.T, l *lane, h2 bool) string {
	var wg sync.WaitGroup
	var same atomic.Int64
	for range 32 {
		wg.Go(func() {
			if strings.Contains(l.send(t, l.client(h2), "POST", "/copy", nil, strings.NewReader("x")), "body 1 <x>") {
				same.Add(1)
			}
		})
	}
	wg.Wait()
	return fmt.Sprintf("%d answers", same.Load())
}
