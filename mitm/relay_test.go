package mitm

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"unwire/captures"
)

func TestHeadersComeBeforeTheBody(t *testing.T) {
	eachVersion(t, func(t *testing.T, h2 bool) {
		for _, length := range []string{"", "5", "500000"} {
			release := make(chan struct{})
			origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if length != "" {
					w.Header().Set("Content-Length", length)
				}
				_ = http.NewResponseController(w).Flush()
				<-release
				if length == "500000" {
					_, _ = w.Write(make([]byte, 500000))
				} else {
					_, _ = io.WriteString(w, "hello")
				}
			}))
			b := newTestProxy(t, []*httptest.Server{origin}, nil)
			ctx, cancel := context.WithTimeout(t.Context(), matrixTimeout)
			req, _ := http.NewRequestWithContext(ctx, "GET", origin.URL, nil)
			res, err := b.client(h2).Do(req)
			close(release)
			if err != nil {
				t.Fatalf("length %q: the headers waited for the body: %v", length, err)
			}
			if body, err := io.ReadAll(res.Body); err != nil || !bytes.HasPrefix(body, []byte("hello")) && len(body) != 500000 {
				t.Errorf("body of %d bytes, %v", len(body), err)
			}
			cancel()
		}
	})
}

// TestLockStep exchanges 200 messages in lock step on one request, which
// finishes only if nothing on the way holds anything back.
func TestLockStep(t *testing.T) {
	eachVersion(t, func(t *testing.T, h2 bool) {
		const rounds = 200
		origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rc := http.NewResponseController(w)
			_ = rc.EnableFullDuplex()
			_ = rc.Flush()
			lines := bufio.NewScanner(r.Body)
			for lines.Scan() {
				fmt.Fprintf(w, "ack %s\n", lines.Text())
				_ = rc.Flush()
			}
		}))
		b := newTestProxy(t, []*httptest.Server{origin}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), matrixTimeout)
		defer cancel()
		lockStep(t, ctx, b.client(h2), origin.URL, rounds)
		ex := b.one()
		var up, down int
		for c, err := range b.store.Chunks(ctx, ex.ID, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if c.Dir == captures.Up {
				up++
			} else if down++; down != up {
				t.Fatalf("chunk %d: %d up, %d down: not in order of arrival", c.Seq, up, down)
			}
		}
		if up != rounds || down != rounds || ex.Outcome != captures.Complete {
			t.Errorf("%d chunks up, %d down, outcome %q", up, down, ex.Outcome)
		}
	})
}

func lockStep(tb testing.TB, ctx context.Context, c *http.Client, url string, rounds int) {
	tb.Helper()
	pr, pw := io.Pipe()
	req, _ := http.NewRequestWithContext(ctx, "POST", url, pr)
	res, err := c.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	for i := range rounds {
		fmt.Fprintf(pw, "%d\n", i)
		got, err := lines.ReadString('\n')
		if want := fmt.Sprintf("ack %d\n", i); err != nil || got != want {
			tb.Fatalf("round %d: %q, %v", i, got, err)
		}
	}
	pw.Close()
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		tb.Errorf("after the last round: %q, %v", rest, err)
	}
}

func TestResetInMidBodyStaysAReset(t *testing.T) {
	eachVersion(t, func(t *testing.T, h2 bool) {
		origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "part")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}))
		b := newTestProxy(t, []*httptest.Server{origin}, nil)
		res, err := b.client(h2).Get(origin.URL)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err == nil || string(body) != "part" {
			t.Errorf("read %q and no error: a reset looks like a clean end", body)
		}
		if ex := b.one(); ex.Outcome != captures.Reset || ex.Error == "" || ex.BytesDown != 4 {
			t.Errorf("recorded %+v", ex)
		}
	})
}

func TestResetBeforeTheHeadersStaysAReset(t *testing.T) {
	eachVersion(t, func(t *testing.T, h2 bool) {
		origin := newTLSOrigin(t, true, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
		b := newTestProxy(t, []*httptest.Server{origin}, nil)
		if res, err := b.client(h2).Post(origin.URL, "", strings.NewReader("x")); err == nil {
			t.Errorf("got status %d", res.StatusCode)
		}
		if ex := b.recorded(1)[0]; ex.Outcome != captures.Reset || ex.Status != 0 {
			t.Errorf("recorded %+v", ex)
		}
	})
}

func TestClientCancelReachesTheServer(t *testing.T) {
	eachVersion(t, func(t *testing.T, h2 bool) {
		gone := make(chan struct{})
		origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			close(gone)
		}))
		b := newTestProxy(t, []*httptest.Server{origin}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		req, _ := http.NewRequestWithContext(ctx, "GET", origin.URL, nil)
		res, err := b.client(h2).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		defer res.Body.Close()
		select {
		case <-gone:
		case <-time.After(matrixTimeout):
			t.Fatal("the server was not told")
		}
		if ex := b.one(); ex.Outcome != captures.Canceled {
			t.Errorf("recorded %+v", ex)
		}
	})
}

func TestTrailers(t *testing.T) {
	eachVersion(t, func(t *testing.T, h2 bool) {
		origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("Trailer", "X-Announced")
			_, _ = w.Write(body)
			_ = http.NewResponseController(w).Flush()
			w.Header().Set("X-Announced", "a "+r.Trailer.Get("X-Up"))
			w.Header().Set(http.TrailerPrefix+"X-Late", "b")
		}))
		b := newTestProxy(t, []*httptest.Server{origin}, nil)
		req, _ := http.NewRequest("POST", origin.URL, io.MultiReader(strings.NewReader("body"))) // of unknown length
		req.Trailer = http.Header{"X-Up": {"sent"}}
		res, err := b.client(h2).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := res.Trailer["X-Announced"]; !ok {
			t.Error("the announcement was lost")
		}
		body, err := io.ReadAll(res.Body)
		if err != nil || string(body) != "body" {
			t.Fatalf("%q, %v", body, err)
		}
		if res.Trailer.Get("X-Announced") != "a sent" || res.Trailer.Get("X-Late") != "b" {
			t.Errorf("trailers %v", res.Trailer)
		}
		ex := b.one()
		if ex.RequestTrailers.Get("x-up") != "sent" || ex.ResponseTrailers.Get("x-announced") != "a sent" || ex.ResponseTrailers.Get("x-late") != "b" {
			t.Errorf("recorded %v, %v", ex.RequestTrailers, ex.ResponseTrailers)
		}
	})
}

// TestEmptyResponseStaysEmpty: gRPC tells errors in a head that ends the stream.
func TestEmptyResponseStaysEmpty(t *testing.T) {
	origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Length"] = nil
		w.Header()["Date"] = nil
		w.Header().Set("Grpc-Status", "12")
	}))
	b := newTestProxy(t, []*httptest.Server{origin}, nil)
	for _, c := range []*http.Client{direct(t, origin, true), b.client(true)} {
		req, _ := http.NewRequest("GET", origin.URL, nil)
		res, err := c.Transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Header) != 1 || res.Header.Get("Grpc-Status") != "12" || res.ContentLength != 0 {
			t.Errorf("header %v, length %d", res.Header, res.ContentLength)
		}
		res.Body.Close()
	}
}

func TestInformationalResponses(t *testing.T) {
	eachVersion(t, func(t *testing.T, h2 bool) {
		origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", "</a>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Del("Link")
			w.WriteHeader(http.StatusOK)
		}))
		b := newTestProxy(t, []*httptest.Server{origin}, nil)
		var mu sync.Mutex
		var seen []string
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, fmt.Sprint(code, h.Get("Link")))
				return nil
			},
		})
		req, _ := http.NewRequestWithContext(ctx, "GET", origin.URL, nil)
		res, err := b.client(h2).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if len(seen) != 1 || seen[0] != "103</a>; rel=preload" || res.Header.Get("Link") != "" {
			t.Errorf("saw %q, then %v", seen, res.Header)
		}
	})
}

func TestExpectContinueIsAskedOfTheServer(t *testing.T) {
	origin := newTLSOrigin(t, false, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusExpectationFailed) // without reading
	}))
	b := newTestProxy(t, []*httptest.Server{origin}, nil)
	conn := tls.Client(b.tunnel(origin.Listener.Addr().String()), &tls.Config{RootCAs: b.roots(), ServerName: "127.0.0.1"})
	_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || res.StatusCode != http.StatusExpectationFailed {
		t.Fatalf("%v, %v", res, err)
	}
}

func TestBigBodiesInBoundedMemory(t *testing.T) {
	const size = 48 << 20
	block := make([]byte, 1<<20)
	_, _ = rand.Read(block)
	eachVersion(t, func(t *testing.T, h2 bool) {
		origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			sum := sha256.New()
			n, err := io.Copy(sum, r.Body)
			w.Header().Set("X-Up", fmt.Sprintf("%d %x %v", n, sum.Sum(nil), err))
			for range size / len(block) {
				_, _ = w.Write(block)
			}
		}))
		b := newTestProxy(t, []*httptest.Server{origin}, nil)
		collect := func() {
			// The first collection keeps what pools contain, and the second one frees it.
			runtime.GC()
			runtime.GC()
		}
		collect()
		var before, now runtime.MemStats
		runtime.ReadMemStats(&before)
		sum := sha256.New()
		res, err := b.client(h2).Post(origin.URL, "", io.TeeReader(io.LimitReader(repeat(block), size), sum))
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("%d %x <nil>", size, sum.Sum(nil)); res.Header.Get("X-Up") != want {
			t.Errorf("the server got %s, sent %s", res.Header.Get("X-Up"), want)
		}
		down := sha256.New()
		if n, err := io.Copy(down, res.Body); n != size || err != nil {
			t.Fatalf("%d bytes, %v", n, err)
		}
		if !bytes.Equal(down.Sum(nil), sum.Sum(nil)) {
			t.Error("the response differs")
		}
		ex := b.one() // and nothing of it waits for the disk
		collect()
		runtime.ReadMemStats(&now)
		if grown := int64(now.HeapAlloc) - int64(before.HeapAlloc); grown > size/2 {
			t.Errorf("the heap grew by %d MB", grown>>20)
		}
		if ex.BytesUp != size || ex.BytesDown != size {
			t.Errorf("recorded %d up, %d down", ex.BytesUp, ex.BytesDown)
		}
	})
}

type repeater struct{ block, left []byte }

func repeat(block []byte) io.Reader { return &repeater{block: block} }

func (r *repeater) Read(p []byte) (int, error) {
	if len(r.left) == 0 {
		r.left = r.block
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

// TestServerClosesInMidFrame: a frame of a stream is cut by the end of the
// server's connection, without a word.
func TestServerClosesInMidFrame(t *testing.T) {
	eachVersion(t, func(t *testing.T, h2 bool) {
		var origin *httptest.Server
		arrived := make(chan struct{}) // a reset takes what was not read yet with it
		origin = newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte{0, 0, 0, 0, 100, 'h', 'a', 'l', 'f'})
			flush(w)
			<-arrived
			go origin.CloseClientConnections()
			<-r.Context().Done()
		}))
		b := newTestProxy(t, []*httptest.Server{origin}, nil)
		res, err := b.client(h2).Get(origin.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		_, err = io.ReadFull(res.Body, make([]byte, 9))
		close(arrived)
		if err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(res.Body); len(rest) != 0 || err == nil {
			t.Errorf("%d more bytes, %v", len(rest), err)
		}
		if ex := b.one(); ex.Outcome != captures.Reset || ex.BytesDown != 9 {
			t.Errorf("recorded %+v", ex)
		}
	})
}

// TestClientVanishes: its connection is reset while both sides talk.
func TestClientVanishes(t *testing.T) {
	left := make(chan struct{}, 2)
	origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "hello")
		flush(w)
		<-r.Context().Done()
		left <- struct{}{}
	}))
	b := newTestProxy(t, []*httptest.Server{origin}, nil)
	raw := b.tunnel(origin.Listener.Addr().String())
	conn := b.handshake(raw, "127.0.0.1", protoH1)
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(res.Body, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	_ = raw.(*net.TCPConn).SetLinger(0)
	raw.Close()
	select {
	case <-left:
	case <-time.After(matrixTimeout):
		t.Error("the server was not told")
	}
	if ex := b.one(); ex.Outcome != captures.Canceled || ex.BytesDown != 5 {
		t.Errorf("recorded %+v", ex)
	}
}
