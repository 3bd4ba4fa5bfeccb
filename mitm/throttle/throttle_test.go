package throttle

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"unwire/captures"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]*Limit{
		"64KB/s":      {BytesPerSecond: 64_000},
		"200ms":       {Latency: 200 * time.Millisecond},
		"2MB/s, 1.5s": {BytesPerSecond: 2_000_000, Latency: 1500 * time.Millisecond},
		"100B/s":      {BytesPerSecond: 100},
		"7/s":         {BytesPerSecond: 7},
	} {
		got, err := Parse(text)
		if err != nil || got.BytesPerSecond != want.BytesPerSecond || got.Latency != want.Latency {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"": "neither", "fast": "neither", "64KB": "neither", "2m": "neither",
		"0KB/s": "not a bandwidth", "-1KB/s": "not a bandwidth", "9999999999999GB/s": "not a bandwidth",
		"1s,1s": `the latency is given twice ("1s")`, "1KB/s,1KB/s": `the bandwidth is given twice ("1KB/s")`,
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// All exchanges share the bandwidth of a direction.
func TestBandwidth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &Limit{BytesPerSecond: 100_000}
		began := time.Now()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 5 {
					l.Wait(context.Background(), captures.Down, 1000)
				}
			})
		}
		l.Wait(context.Background(), captures.Up, 1000)
		if d := time.Since(began); d > 150*time.Millisecond {
			t.Errorf("the other direction took %v", d)
		}
		all.Wait()
		if d := time.Since(began); d < 190*time.Millisecond || d > 210*time.Millisecond {
			t.Errorf("20 KB at 100 KB/s took %v", d)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if l.Wait(ctx, captures.Down, 1<<30); time.Since(began) > 10*time.Second {
			t.Error("an ended context did not end the wait")
		}
	})
}
