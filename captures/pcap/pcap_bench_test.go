package pcap

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"unwire/captures/store"
)

// BenchmarkImport imports a conversation of some 40 MB over each transport:
// half of it text, half of it noise, in messages of 16 KiB.
func BenchmarkImport(b *testing.B) {
	text := bytes.Repeat([]byte("a line of text that is much like the next one\n"), 16384/46)
	noise := make([]byte, 16384)
	r := rand.NewChaCha8([32]byte{})
	_, _ = r.Read(noise)
	for _, tr := range []transport{transports()[4], transports()[3], transports()[6], transports()[2]} {
		s, c, p := tr.start(b, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for range 1200 {
				_, _ = w.Write(text)
				_, _ = w.Write(noise)
			}
		}))
		res, err := c.Get(s.URL)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			b.Fatal(err)
		}
		res.Body.Close()
		list := p.packets(b, linkEthernet)
		for name, order := range map[string][]rawPacket{"ordered": list, "shuffled": shuffled(list)} {
			file := pcapng(b, linkEthernet, order, p.keys.Bytes())
			for _, keep := range []bool{false, true} {
				b.Run(fmt.Sprintf("%s/%s/keep-secrets=%t", tr.name, name, keep), func(b *testing.B) {
					b.SetBytes(int64(len(file)))
					var peak atomic.Int64
					stop := watchHeap(&peak)
					for i := range b.N {
						store, err := store.Create(filepath.Join(b.TempDir(), fmt.Sprint(i)+".uwc"), store.Options{KeepSecrets: keep})
						if err != nil {
							b.Fatal(err)
						}
						sum, err := Import(context.Background(), bytes.NewReader(file), Options{Store: store})
						if err != nil || sum.Exchanges != 1 || sum.Undecoded != 0 {
							b.Fatal(err, sum)
						}
						if err := store.Close(); err != nil {
							b.Fatal(err)
						}
					}
					stop()
					b.ReportMetric(float64(peak.Load())/1e6, "MB-more-heap")
				})
			}
		}
	}
}

// watchHeap keeps how much the heap grew at most, until it is stopped.
func watchHeap(peak *atomic.Int64) (stop func()) {
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak.Store(max(peak.Load(), int64(m.HeapInuse)-int64(before.HeapInuse)))
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	}()
	return func() { close(done) }
}
