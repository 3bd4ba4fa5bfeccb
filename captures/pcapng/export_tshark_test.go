package pcapng_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/internal/samples"
	"unwire/captures/need"
	"unwire/captures/pcapng"
	"unwire/captures/store"
)

// TestTshark has tshark open an export without any option: it shows the same
// requests and header fields, and a DATA frame for each chunk, with its bytes
// and its time.
func TestTshark(t *testing.T) {
	t.Parallel()
	tshark := need.Program(t, "tshark", "tshark", "--version")
	from := samples.Store(t, t.TempDir(), store.Options{KeepSecrets: true})
	var requests, frames []string
	for i := range 12 {
		h2 := i%3 != 0
		ex := captures.Exchange{
			Method: "POST", URL: fmt.Sprintf("https://api.example/p.v1.S/M%d", i), HTTP: "1.1", Started: time.Unix(1_700_000_000, int64(i)*1000),
			Client: fmt.Sprintf("10.0.0.1:%d", 40000+i%3), Server: "10.0.0.9:34567",
			TLS:            captures.TLS{Version: []string{"1.3", "1.2"}[i/6], ServerName: "api.example", ALPN: "http/1.1"},
			RequestHeaders: captures.Headers{{Name: "content-type", Value: "application/x-made-up"}, {Name: "x-mine", Value: strconv.Itoa(i)}},
		}
		if h2 {
			ex.HTTP, ex.TLS.ALPN = "2", "h2"
		} else {
			ex.Started = ex.Started.Add(time.Duration(i) * time.Hour) // each behind the other
			ex.RequestHeaders = append(ex.RequestHeaders, captures.Header{Name: "Content-Length", Value: "6"})
		}
		rec, err := from.Begin(ex)
		if err != nil {
			t.Fatal(err)
		}
		chunk := func(dir captures.Direction, at time.Duration, p []byte) {
			rec.ChunkAt(dir, at, p)
			if h2 {
				frames = append(frames, fmt.Sprintf("%s %.9f %x", dir, float64(ex.Started.Add(at).UnixNano()-1_700_000_000e9)/1e9, p))
			}
		}
		chunk(captures.Up, time.Duration(i+1)*time.Millisecond, fmt.Appendf(nil, "ask %02d", i))
		rec.Response(200, captures.Headers{{Name: "content-type", Value: "application/x-made-up"}})
		for k := range 3 {
			chunk(captures.Down, time.Duration(i+2+k)*time.Millisecond, bytes.Repeat([]byte{byte(i + 1), byte(k)}, 20+i*k*400))
		}
		rec.Trailers(captures.Down, captures.Headers{{Name: "x-trailer", Value: strconv.Itoa(i)}})
		rec.EndAt(time.Second, captures.Complete, "")
		requests = append(requests, fmt.Sprintf("POST /p.v1.S/M%d %d", i, i))
	}
	if err := from.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "x.pcapng")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pcapng.Export(context.Background(), file, from, pcapng.Options{Name: "x.uwc"}); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), tshark, append([]string{"-r", name}, args...)...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("tshark: %v\n%s", err, stderr.String())
		}
		return string(out)
	}
	fields := func(filter string, names ...string) (rows [][]string) {
		args := []string{"-Y", filter, "-T", "fields", "-E", "separator=;"}
		for _, n := range names {
			args = append(args, "-e", n)
		}
		for line := range strings.Lines(run(args...)) {
			rows = append(rows, strings.Split(strings.TrimRight(line, "\n"), ";"))
		}
		return rows
	}

	var got []string
	for _, r := range fields("http2.headers.method", "http2.headers.method", "http2.headers.path", "http2.header.name", "http2.header.value") {
		names, values := strings.Split(r[2], ","), strings.Split(r[3], ",")
		if at := slices.Index(names, "x-mine"); at >= 0 && len(values) == len(names) {
			got = append(got, r[0]+" "+r[1]+" "+values[at])
		}
	}
	for _, r := range fields("http.request", "http.request.method", "http.request.uri", "http.request.line") {
		_, mine, _ := strings.Cut(r[2], "x-mine: ")
		n, _, _ := strings.Cut(mine, `\r`)
		got = append(got, r[0]+" "+r[1]+" "+n)
	}
	slices.Sort(got)
	if slices.Sort(requests); !slices.Equal(got, requests) {
		t.Errorf("requests %q, want %q", got, requests)
	}

	got = nil
	for _, r := range fields("http2.data.data", "frame.time_epoch", "tcp.dstport", "http2.type", "http2.length", "http2.data.data") {
		got = append(got, dataFrames(t, r)...)
	}
	slices.Sort(got)
	if slices.Sort(frames); !slices.Equal(got, frames) {
		t.Errorf("%d DATA frames, want %d:\n%.2000q\n%.2000q", len(got), len(frames), got, frames)
	}

	if rows := fields("tls.handshake.type == 1", "tls.handshake.extensions_server_name", "tls.handshake.extensions_alpn_str"); len(rows) == 0 || rows[0][0] != "api.example" || rows[0][1] == "" {
		t.Errorf("ClientHello %q", rows)
	}
	if bad := run("-Y", "_ws.malformed || tcp.analysis.lost_segment || tcp.analysis.retransmission || _ws.expert.severity == error"); bad != "" {
		t.Errorf("tshark finds fault:\n%s", bad)
	}
}

// dataFrames reads a line of time;port;types;lengths;data, where each of the
// lists has commas: a packet may have several frames. DATA without bytes has no
// data; behind a stream's last DATA, its whole body may stand once more.
func dataFrames(t *testing.T, r []string) (out []string) {
	dir := "down"
	if r[1] == "34567" {
		dir = "up"
	}
	sec, err := strconv.ParseFloat(strings.TrimPrefix(r[0], "17"), 64) // of 1,700,000,000
	if err != nil {
		t.Fatal(err)
	}
	types, lengths, data := strings.Split(r[2], ","), strings.Split(r[3], ","), strings.Split(r[4], ",")
	for i, kind := range types {
		n, err := strconv.Atoi(lengths[i])
		if err != nil {
			t.Fatal(err)
		}
		if kind != "0" || n == 0 {
			continue
		}
		for len(data) > 0 && len(data[0]) != 2*n {
			data = data[1:]
		}
		if len(data) == 0 {
			t.Fatalf("no data of a DATA frame in %q", r)
		}
		if _, err := hex.DecodeString(data[0]); err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s %.9f %s", dir, sec, data[0]))
		data = data[1:]
	}
	return out
}

// TestTsharkComments has tshark find the packets of exchanges that rules changed by their comments.
func TestTsharkComments(t *testing.T) {
	t.Parallel()
	tshark := need.Program(t, "tshark", "tshark", "--version")
	dir := t.TempDir()
	file := filepath.Join(dir, "a.pcapng")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pcapng.Export(context.Background(), out, rewritten(t, dir), pcapng.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := exec.CommandContext(t.Context(), tshark, "-r", file, "-Y", `frame.comment contains "changed by rules"`, "-T", "fields", "-e", "frame.comment").Output()
	if err != nil {
		t.Fatal(err)
	}
	got := slices.Compact(strings.Split(strings.TrimSpace(string(b)), "\n"))
	want := []string{
		"unwire: exchange 1 was changed by rules (first é); shown: received",
		"unwire: exchange 2 was changed by rules (first é); shown: received",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
