package pipeline

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// processorTime returns the processor time of this process and its children.
func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			tb.Fatal(err)
		}
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum
}

// BenchmarkPipeline compares the processor time of the pipeline with that of `unwire schema infer` over the same
// segments, in turn: "x-infer" is the ratio of the sums. "segments/core-s" is how many segments one core reads in a
// second, and "x-evidence" the growth of the process's memory by its evidence.
func BenchmarkPipeline(b *testing.B) {
	dir := b.TempDir()
	const segments, exchanges = 16, 200
	names := writeSegments(b, filepath.Join(dir, "segments"), segments, exchanges)
	bin := unwire(b)
	list := filepath.Join(dir, "list")
	if err := os.WriteFile(list, []byte(strings.Join(names, "\n")+"\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	size := int64(0)
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			b.Fatal(err)
		}
		size += info.Size()
	}
	b.SetBytes(size)
	infer := func() {
		if out, err := exec.Command(bin, "schema", "infer", "-o", filepath.Join(b.TempDir(), "out")+"/", "@"+list).CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
	}

	// The first run of each loads code and starts the runner.
	infer()
	run(b, Options{Segments: names, Output: filepath.Join(b.TempDir(), "results")})
	var here, there time.Duration
	var evidence int64
	for b.Loop() {
		start := processorTime(b)
		report := run(b, Options{Segments: names, Output: filepath.Join(b.TempDir(), "results")})
		here += processorTime(b) - start
		evidence = 0
		for _, shard := range report.Manifest.Shards {
			evidence += shard.Bytes
		}
		b.StopTimer()
		start = processorTime(b)
		infer()
		there += processorTime(b) - start
		b.StartTimer()
	}
	b.ReportMetric(here.Seconds()/there.Seconds(), "x-infer")
	b.ReportMetric(float64(b.N)*segments/here.Seconds(), "segments/core-s")
	b.ReportMetric(float64(evidence), "evidence-bytes")
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapSys)/(1<<20), "heap-MB")
}
