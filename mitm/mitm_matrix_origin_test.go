package mitm

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	matrixStreams = 600
	matrixTimeout = time.Minute
)

// A matrixOrigin is the server of the matrix: what it does is in the path.
type matrixOrigin struct {
	mux *http.ServeMux

	mu    sync.Mutex
	ended map[string]chan struct{} // by key: the request's context has ended
	crowd map[string]chan struct{} // by key: all streams are there
	here  map[string]int
}

func newMatrixOrigin(t *testing.T) *httptest.Server {
	o := &matrixOrigin{
		mux: http.NewServeMux(), ended: make(map[string]chan struct{}),
		crowd: make(map[string]chan struct{}), here: make(map[string]int),
	}
	for path, h := range map[string]http.HandlerFunc{
		"/echo": o.echo, "/copy": o.copy, "/first": o.first, "/trailers": o.trailers, "/hints": o.hints,
		"/early": o.early, "/wait": o.wait, "/ended": o.hasEnded, "/cut": o.cut, "/gone": o.gone, "/after": o.after,
		"/gzip": o.gzip, "/status": o.status, "/big-head": o.bigHead, "/many-heads": o.manyHeads,
		"/repeated": o.repeated, "/flood": o.flood, "/together": o.together, "/short": o.short,
		"/upgrade": o.upgrade, "/websocket": o.websocket, "/length": o.length, "/type": o.noType, "/range": o.part, "/sum": o.sum, "/answer": o.answer,
	} {
		o.mux.HandleFunc(path, h)
	}
	s := httptest.NewUnstartedServer(o.mux)
	s.EnableHTTP2 = true
	s.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 2 * matrixStreams}
	s.StartTLS()
	s.TLS.NextProtos = []string{protoH2, protoH1, protoOldH1}
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

// echo answers with the request as it arrived, without the host, which a
// client of the reverse proxy does not know.
func (o *matrixOrigin) echo(w http.ResponseWriter, r *http.Request) {
	r.Host = "-"
	r.Header.Del("Connection") // is about one connection
	text := describe(r)
	for _, name := range []string{"X-Forwarded-For", "Via", "Forwarded"} {
		if r.Header.Get(name) != "" {
			text += "added by a proxy: " + name
		}
	}
	_, _ = fmt.Fprintf(w, "%strailer %v", text, r.Trailer)
}

// copy returns each piece of the body when it comes.
func (o *matrixOrigin) copy(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).EnableFullDuplex()
	flush(w)
	buf := make([]byte, 4096)
	for {
		n, err := r.Body.Read(buf)
		if n > 0 {
			_, _ = w.Write(buf[:n])
			flush(w)
		}
		if err != nil {
			return
		}
	}
}

// first answers before it reads.
func (o *matrixOrigin) first(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).EnableFullDuplex()
	w.Header().Set("X-First", "yes")
	flush(w)
	body, err := io.ReadAll(r.Body)
	_, _ = fmt.Fprintf(w, "%s %v", body, err)
}

func (o *matrixOrigin) trailers(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Trailer", "X-Announced, X-Left-Out")
	if r.URL.Query().Get("body") != "" {
		_, _ = io.WriteString(w, "body")
	}
	flush(w)
	w.Header()["X-Announced"] = []string{"1", "2"}
	w.Header().Set(http.TrailerPrefix+"X-Unannounced", "3")
}

func (o *matrixOrigin) hints(w http.ResponseWriter, _ *http.Request) {
	for _, l := range []string{"</a>", "</b>"} {
		w.Header().Set("Link", l)
		w.WriteHeader(http.StatusEarlyHints)
	}
	w.Header().Del("Link")
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, "after hints")
}

// early refuses without reading.
func (o *matrixOrigin) early(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).EnableFullDuplex() // else it reads first after all
	w.Header().Set("Content-Length", "7")
	w.WriteHeader(http.StatusForbidden)
	_, _ = io.WriteString(w, "refused")
	flush(w)
	_ = r.Body.Close() // net/http does it too late in full duplex: a body that has come by then breaks the connection
}

// wait begins an answer that breaks off when the client leaves. A clean end could still reach a client that cancels:
// net/http sends close_notify, at which the server stops waiting, before it closes the connection.
func (o *matrixOrigin) wait(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, "begun")
	flush(w)
	<-r.Context().Done()
	close(o.endOf(r.URL.Query().Get("key")))
	panic(http.ErrAbortHandler)
}

func (o *matrixOrigin) endOf(key string) chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	c, ok := o.ended[key]
	if !ok {
		c = make(chan struct{})
		o.ended[key] = c
	}
	return c
}

// hasEnded tells whether a waiting request has noticed that its client left.
func (o *matrixOrigin) hasEnded(w http.ResponseWriter, r *http.Request) {
	select {
	case <-o.endOf(r.URL.Query().Get("key")):
		_, _ = io.WriteString(w, "it ended")
	case <-time.After(matrixTimeout):
		_, _ = io.WriteString(w, "it still runs")
	}
}

// cut ends in mid-body.
func (o *matrixOrigin) cut(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, "half")
	flush(w)
	panic(http.ErrAbortHandler)
}

func (o *matrixOrigin) gone(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// after answers at length when the request has ended.
func (o *matrixOrigin) after(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	for i := range 5 {
		_, _ = fmt.Fprintf(w, "%d after %q %v\n", i, body, err)
		flush(w)
	}
}

func (o *matrixOrigin) gzip(w http.ResponseWriter, r *http.Request) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, strings.Repeat("gzip ", 1000))
	_ = z.Close()
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Set("X-Asked", r.Header.Get("Accept-Encoding"))
	_, _ = w.Write(packed.Bytes())
}

func (o *matrixOrigin) status(w http.ResponseWriter, r *http.Request) {
	code, _ := strconv.Atoi(r.URL.Query().Get("code"))
	w.Header().Set("Etag", `"tag"`)
	w.WriteHeader(code)
}

func (o *matrixOrigin) bigHead(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.Atoi(r.URL.Query().Get("n"))
	w.Header().Set("X-Big", strings.Repeat("b", n))
	w.Header().Set("X-Got", strconv.Itoa(len(r.Header.Get("X-Big"))))
}

func (o *matrixOrigin) manyHeads(w http.ResponseWriter, r *http.Request) {
	for i := range 1000 {
		w.Header().Set(fmt.Sprintf("X-Many-%d", i), strconv.Itoa(i))
	}
	w.Header().Set("X-Got", strconv.Itoa(len(r.Header)))
}

func (o *matrixOrigin) repeated(w http.ResponseWriter, r *http.Request) {
	w.Header()["X-Repeated"] = r.Header["X-Repeated"]
	w.Header()["Set-Cookie"] = []string{"b=2; Path=/", "a=1; HttpOnly"}
	_, _ = fmt.Fprintf(w, "%q %q", r.Header["X-Repeated"], r.Header["Cookie"])
}

// flood sends more than any window holds.
func (o *matrixOrigin) flood(w http.ResponseWriter, _ *http.Request) {
	block := make([]byte, 64<<10)
	for range 64 {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

// together answers when all streams with one key are there at once.
func (o *matrixOrigin) together(w http.ResponseWriter, r *http.Request) {
	key := r.URL.Query().Get("key")
	o.mu.Lock()
	if o.crowd[key] == nil {
		o.crowd[key] = make(chan struct{})
	}
	all := o.crowd[key]
	if o.here[key]++; o.here[key] == matrixStreams {
		close(all)
	}
	o.mu.Unlock()
	select {
	case <-all:
		_, _ = io.WriteString(w, "together")
	case <-time.After(matrixTimeout):
		w.WriteHeader(http.StatusGatewayTimeout)
	}
}

// short sends less than it declares.
func (o *matrixOrigin) short(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "10")
	_, _ = io.WriteString(w, "short")
}

// upgrade changes to a protocol that begins with the server's word, in one
// piece with the answer, and then echoes until the client ends.
func (o *matrixOrigin) upgrade(w http.ResponseWriter, r *http.Request) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "no upgrade here", http.StatusUpgradeRequired)
		return
	}
	defer conn.Close()
	_, _ = fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\nSec-Websocket-Accept: %s\r\n\r\nwelcome\n",
		r.Header.Get("Upgrade"), r.Header.Get("Sec-Websocket-Key"))
	_ = rw.Flush()
	_, _ = io.Copy(conn, rw)
	if h, ok := conn.(interface{ CloseWrite() error }); ok {
		_, err = io.WriteString(conn, "bye\n")
		_ = errors.Join(err, h.CloseWrite())
	}
}

func (o *matrixOrigin) length(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "5")
	_, _ = io.WriteString(w, "fixed")
}

func (o *matrixOrigin) noType(w http.ResponseWriter, _ *http.Request) {
	w.Header()["Content-Type"] = nil
	w.Header()["Date"] = nil
	_, _ = io.WriteString(w, "untyped")
}

func (o *matrixOrigin) part(w http.ResponseWriter, r *http.Request) {
	http.ServeContent(w, r, "part.bin", time.Unix(1, 0), strings.NewReader("0123456789"))
}

// sum tells the length and hash of an upload.
func (o *matrixOrigin) sum(w http.ResponseWriter, r *http.Request) {
	h := sha256.New()
	n, err := io.Copy(h, r.Body)
	_, _ = fmt.Fprintf(w, "%d %x %v, length %d", n, h.Sum(nil), err, r.ContentLength)
}
