package mitm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"unwire/captures"
)

// TestStopDuring50Streams: those that end in time are whole, the others are
// marked.
func TestStopDuring50Streams(t *testing.T) {
	const streams = 50
	stopping := make(chan struct{})
	origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "begun")
		flush(w)
		<-stopping
		if n, _ := strconv.Atoi(r.URL.Query().Get("n")); n%2 == 0 {
			_, _ = io.WriteString(w, " and done")
			return
		}
		<-r.Context().Done()
	}))
	b := newTestProxy(t, []*httptest.Server{origin}, nil)
	c := b.client(true)
	var begun, answered, ended sync.WaitGroup
	begun.Add(streams)
	answered.Add(streams / 2)
	for i := range streams {
		ended.Go(func() {
			res, err := c.Get(fmt.Sprintf("%s/?n=%d", origin.URL, i))
			if i%2 == 0 {
				defer answered.Done()
			}
			if err != nil {
				t.Error(err)
				begun.Done()
				return
			}
			defer res.Body.Close()
			_, _ = io.ReadFull(res.Body, make([]byte, 5))
			begun.Done()
			rest, err := io.ReadAll(res.Body)
			if whole := i%2 == 0; whole && (err != nil || string(rest) != " and done") || !whole && err == nil {
				t.Errorf("stream %d: %q, %v", i, rest, err)
			}
		})
	}
	begun.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- b.proxy.Shutdown(ctx) }()
	time.Sleep(100 * time.Millisecond)
	close(stopping)
	answered.Wait()
	if n := b.ended(streams / 2); n > streams/2 {
		t.Errorf("%d streams ended before the time was over", n)
	}
	select {
	case err := <-stopped:
		t.Errorf("Shutdown: %v, before the time was over", err)
	default:
	}
	cancel()
	if err := <-stopped; !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v", err)
	}
	ended.Wait()
	outcomes := make(map[captures.Outcome]int)
	for _, ex := range b.recorded(streams) {
		outcomes[ex.Outcome]++
	}
	if outcomes[captures.Complete] != streams/2 || outcomes[captures.Incomplete] != streams/2 {
		t.Errorf("outcomes %v", outcomes)
	}
}

func TestShutdownMarksWhatStillRuns(t *testing.T) {
	eachVersion(t, func(t *testing.T, h2 bool) {
		origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "part")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}))
		b := newTestProxy(t, []*httptest.Server{origin}, nil)
		res, err := b.client(h2).Get(origin.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if _, err := io.ReadFull(res.Body, make([]byte, 4)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := b.proxy.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown: %v", err)
		}
		if ex := b.one(); ex.Outcome != captures.Incomplete || ex.BytesDown != 4 {
			t.Errorf("recorded %+v", ex)
		}
		if _, err := io.ReadAll(res.Body); err == nil {
			t.Error("the client saw a clean end")
		}
	})
}

func TestShutdownLetsExchangesEnd(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-release
		_, _ = io.WriteString(w, "done")
	}))
	b := newTestProxy(t, []*httptest.Server{origin}, nil)
	answer := make(chan string, 1)
	go func() {
		_, body := get(t, b.client(true), origin.URL)
		answer <- string(body)
	}()
	<-entered
	time.AfterFunc(100*time.Millisecond, func() { close(release) })
	ctx, cancel := context.WithTimeout(t.Context(), matrixTimeout)
	defer cancel()
	if err := b.proxy.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if got := <-answer; got != "done" {
		t.Errorf("the client got %q", got)
	}
}

// TestShutdownLeavesNothing: tunnels that are passed on, silent connections and
// idle ones all end with the proxy.
func TestShutdownLeavesNothing(t *testing.T) {
	origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	echo := echoServer(t, "hello")
	b := newTestProxy(t, []*httptest.Server{origin}, func(o *Options) { o.Skip = []string{"localhost"} })
	get(t, b.client(true), origin.URL) // what is started once is running now
	before := runtime.NumGoroutine()
	for _, addr := range []string{echo, strings.Replace(echo, "127.0.0.1", "localhost", 1)} {
		expectLine(t, b.tunnel(addr), "hello")
	}
	b.tunnel(origin.Listener.Addr().String()) // says nothing
	redirected, err := net.Dial("tcp", b.redirectAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer redirected.Close()
	for _, h2 := range []bool{false, true} {
		get(t, b.client(h2), origin.URL)
	}
	ctx, cancel := context.WithTimeout(t.Context(), matrixTimeout)
	defer cancel()
	if err := b.proxy.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	deadline := time.Now().Add(5*time.Second + matrixTimeout) // routes wait for so long
	for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		time.Sleep(20 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before {
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines, %d before:\n%s", n, before, buf[:runtime.Stack(buf, true)])
	}
}
