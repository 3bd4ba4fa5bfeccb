package mitm

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// TestSlowReaderSlowsTheSender: what the proxy and the windows on the way hold
// is all that a server can send to a client that does not read.
func TestSlowReaderSlowsTheSender(t *testing.T) {
	const size, most = 64 << 20, 24 << 20
	eachVersion(t, func(t *testing.T, h2 bool) {
		var sent atomic.Int64
		origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			block := make([]byte, 64<<10)
			for range size / len(block) {
				n, err := w.Write(block)
				sent.Add(int64(n))
				if err != nil {
					return
				}
			}
		}))
		b := newTestProxy(t, []*httptest.Server{origin}, nil)
		res, err := b.client(h2).Get(origin.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		last := int64(-1)
		for stalled := 0; stalled < 5; { // until no more is sent
			time.Sleep(20 * time.Millisecond)
			if now := sent.Load(); now == last {
				stalled++
			} else {
				last, stalled = now, 0
			}
		}
		if last > most {
			t.Errorf("%d MB were sent to a client that reads nothing", last>>20)
		}
		if n, err := io.Copy(io.Discard, res.Body); n != size || err != nil {
			t.Errorf("then it read %d, %v", n, err)
		}
	})
}

// TestLargeBodyInBoundedMemory measures all that client, proxy, recorder and
// server hold together. UNWIRE_LONG=1 sends a gigabyte.
func TestLargeBodyInBoundedMemory(t *testing.T) {
	size, most := int64(64<<20), int64(100<<20)
	if os.Getenv("UNWIRE_LONG") != "" {
		size, most = 1<<30, 200<<20
	}
	origin := newTLSOrigin(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	b := newTestProxy(t, []*httptest.Server{origin}, nil)
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	var peak atomic.Int64
	done := make(chan struct{})
	sampled := make(chan struct{})
	go func() {
		defer close(sampled)
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				var now runtime.MemStats
				runtime.ReadMemStats(&now)
				peak.Store(max(peak.Load(), int64(now.HeapAlloc)-int64(before.HeapAlloc)))
			}
		}
	}()
	res, err := b.client(true).Post(origin.URL, "", io.LimitReader(repeat(make([]byte, 1<<20)), size))
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, res.Body)
	res.Body.Close()
	close(done)
	<-sampled
	if n != size || err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
	t.Logf("%d MB up and down, the heap grew by %d MB at most", size>>20, peak.Load()>>20)
	if peak.Load() > most {
		t.Errorf("the heap grew by %d MB", peak.Load()>>20)
	}
	if ex := b.one(); ex.BytesUp != size || ex.BytesDown != size {
		t.Errorf("recorded %d up, %d down", ex.BytesUp, ex.BytesDown)
	}
}
