package pipeline

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/options/jobopts"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/universal/extworker"
	"google.golang.org/protobuf/encoding/protowire"

	"unwire/captures"
	"unwire/captures/store"
)

// The environment variable processVar selects which process of BenchmarkMemory the test program is.
const processVar = "UNWIRE_PIPELINE_PROCESS"

// runProcess runs one of the processes of BenchmarkMemory: the runner (prism), a pool of workers, the driver, or
// all in one. It prints the runner's or worker's address, and the driver's manifest in brief.
func runProcess(name string) error {
	ctx := context.Background()
	switch name {
	case "runner":
		port, err := freePort()
		if err != nil {
			return err
		}
		if _, err := prism.CreateJobServer(ctx, prism.Options{Port: port}); err != nil {
			return err
		}
		fmt.Printf("localhost:%d\n", port)
		select {}
	case "worker":
		pool, err := extworker.StartLoopback(ctx, 0)
		if err != nil {
			return err
		}
		fmt.Println(pool.EnvironmentConfig(ctx))
		select {}
	}

	runner, args := "prism", flag.Args()
	if name == "driver" {
		runner = "universal"
		*jobopts.Endpoint, *jobopts.EnvironmentType, *jobopts.EnvironmentConfig, args = args[0], "external", args[1], args[2:]
		// Beam sends its own program to the runner, unless there is another; nobody starts it.
		*jobopts.WorkerBinary = "go.mod"
	}
	report, err := Run(ctx, runner, Options{Segments: []string{args[0]}, Output: args[1]})
	if err != nil {
		return err
	}
	evidence := int64(0)
	for _, shard := range report.Manifest.Shards {
		evidence += shard.Bytes
	}
	fmt.Println(report.Read, len(report.Manifest.Shards), evidence)
	return nil
}

// freePort returns a TCP port that nobody listens on.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// A process is a running process of BenchmarkMemory.
type process struct {
	*exec.Cmd
	out   *bufio.Reader
	trace bytes.Buffer
}

// startProcess starts a process of BenchmarkMemory. It traces the garbage collector.
func startProcess(tb testing.TB, name string, args ...string) *process {
	tb.Helper()
	p := &process{Cmd: exec.Command(os.Args[0], args...)}
	p.Env = append(os.Environ(), processVar+"="+name, "GODEBUG=gctrace=1")
	p.Stderr = &p.trace
	out, err := p.StdoutPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = p.Process.Kill() })
	p.out = bufio.NewReader(out)
	return p
}

// line returns the next line that the process prints.
func (p *process) line(tb testing.TB) string {
	tb.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		_ = p.Wait()
		tb.Fatalf("%v\n%s", err, p.trace.Bytes())
	}
	return strings.TrimSpace(line)
}

// received returns how many bytes the process has read, from connections and files; 0 if the system does not tell.
func (p *process) received() (n int64) {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/io", p.Process.Pid))
	_, _ = fmt.Sscanf(string(data), "rchar: %d", &n)
	return n
}

// stop ends the process, and returns its peak memory in MB: the resident set, and the Go heap, of which a part is
// garbage.
func (p *process) stop(tb testing.TB) (resident, heap float64) {
	tb.Helper()
	_ = p.Process.Kill()
	_, _ = io.Copy(io.Discard, p.out)
	_ = p.Wait()
	if u, ok := p.ProcessState.SysUsage().(*syscall.Rusage); ok {
		resident = float64(u.Maxrss) / 1024
	}
	// gc 7 @0.4s 2%: … ms clock, … ms cpu, 21->22->12 MB, 25 MB goal, …
	for line := range strings.Lines(p.trace.String()) {
		for _, part := range strings.Split(line, ", ") {
			if sizes := strings.Split(strings.TrimSuffix(part, " MB"), "->"); len(sizes) == 3 {
				n, _ := strconv.ParseFloat(sizes[1], 64)
				heap = max(heap, n)
			}
		}
	}
	return resident, heap
}

// BenchmarkMemory measures the memory of a pipeline by the number of segments. The driver, the runner (prism) and the
// workers are processes of their own here, so that each is measured by itself; "alone" is the usual process that is all
// three.
//
//   - evidence-MB is the merged evidence in the output
//   - segments-MB is the sum of the evidence of all segments, packed, as it would cross the shuffle without lifting
//   - shuffle-MB is what the runner receives, which is what crosses the shuffle
//   - the others are the peaks of the resident set and of the Go heap of each process
func BenchmarkMemory(b *testing.B) {
	counts := []int{30, 100, 300}
	if os.Getenv("UNWIRE_LONG") != "" {
		counts = append(counts, 1000)
	}
	for _, segments := range counts {
		b.Run(fmt.Sprintf("segments=%d", segments), func(b *testing.B) {
			dir := b.TempDir()
			names := writeWideSegments(b, filepath.Join(dir, "segments"), segments)
			pattern := filepath.Join(dir, "segments", "*.uwc")
			for b.Loop() {
				measureMemory(b, pattern, b.TempDir())
			}
			b.ReportMetric(packedMB(b, names), "segments-MB")
		})
	}
}

// measureMemory runs the pipeline in several processes, and then in one, and reports their memory.
func measureMemory(b *testing.B, pattern, dir string) {
	runner, worker := startProcess(b, "runner"), startProcess(b, "worker")
	endpoint, pool := runner.line(b), worker.line(b)
	driver := startProcess(b, "driver", endpoint, pool, pattern, filepath.Join(dir, "apart"))
	alone := func() *process { return startProcess(b, "alone", pattern, filepath.Join(dir, "alone")) }

	before := runner.received()
	var read, shards, evidence int64
	if _, err := fmt.Sscan(driver.line(b), &read, &shards, &evidence); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(evidence)/(1<<20), "evidence-MB")
	b.ReportMetric(float64(runner.received()-before)/(1<<20), "shuffle-MB")
	for _, p := range []struct {
		name string
		*process
	}{{"driver", driver}, {"runner", runner}, {"worker", worker}} {
		resident, heap := p.stop(b)
		b.ReportMetric(resident, p.name+"-RSS-MB")
		b.ReportMetric(heap, p.name+"-heap-MB")
	}

	all := alone()
	all.line(b)
	resident, heap := all.stop(b)
	b.ReportMetric(resident, "alone-RSS-MB")
	b.ReportMetric(heap, "alone-heap-MB")
}

// packedMB returns the size of the evidence of all segments, packed, in MB.
func packedMB(b *testing.B, names []string) float64 {
	size := 0
	for i, name := range names {
		s, err := store.Open(name, store.ReadOptions{Profile: subject()})
		if err != nil {
			b.Fatal(err)
		}
		x := extraction{sum: fmt.Sprintf("%064x", i), capture: s, result: func([]byte) {}}
		if err := x.evidence(b.Context(), func(_ string, packed []byte) { size += len(packed) }); err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
	return float64(size) / (1 << 20)
}

// writeWideSegments records n segments of two versions of a client on two days, with four methods whose messages have
// 400 fields each, and returns their names.
func writeWideSegments(tb testing.TB, dir string, n int) (names []string) {
	tb.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	for i := range n {
		name := filepath.Join(dir, fmt.Sprintf("%04d.uwc", i))
		names = append(names, name)
		s, err := store.Create(name, store.Options{})
		if err != nil {
			tb.Fatal(err)
		}
		r := rand.New(rand.NewPCG(uint64(i), 1))
		headers := captures.Headers{{Name: "content-type", Value: "application/proto"}}
		client := captures.Header{Name: "user-agent", Value: fmt.Sprintf("shop/1.%d", i%4/2)}
		for j := range 8 {
			rec, err := s.Begin(captures.Exchange{
				Method: "POST", URL: fmt.Sprintf("https://h.example/shop.v1.ShopService/Method%d", j%4), HTTP: "2", Status: 200,
				Started:        time.Date(2026, 1, 2+i%2, 10, 0, i%60, j, time.UTC),
				RequestHeaders: append(headers, client), ResponseHeaders: headers,
			})
			if err != nil {
				tb.Fatal(err)
			}
			rec.Chunk(captures.Up, wideMessage(r))
			rec.Chunk(captures.Down, wideMessage(r))
			rec.End(captures.Complete, "")
		}
		if err := s.Close(); err != nil {
			tb.Fatal(err)
		}
	}
	return names
}

// wideMessage is a message with 200 fields, a quarter of which are messages of four fields.
func wideMessage(r *rand.Rand) (m []byte) {
	for n := protowire.Number(1); n <= 200; n++ {
		switch n % 4 {
		case 0:
			m = protowire.AppendVarint(protowire.AppendTag(m, n, protowire.VarintType), r.Uint64N(100_000))
		case 1:
			m = protowire.AppendString(protowire.AppendTag(m, n, protowire.BytesType), fmt.Sprintf("text %d of a field", r.IntN(1000)))
		case 2:
			m = protowire.AppendFixed64(protowire.AppendTag(m, n, protowire.Fixed64Type), r.Uint64())
		case 3:
			m = protowire.AppendBytes(protowire.AppendTag(m, n, protowire.BytesType), message(r, false))
		}
	}
	return m
}
