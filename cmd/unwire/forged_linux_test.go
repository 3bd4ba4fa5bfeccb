package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"unwire/captures"
	"unwire/captures/store"
)

// A forgery changes a capture of two calls into one that no recorder writes.
type forgery struct {
	name   string
	alter  []string // statements
	patch  func(t *testing.T, file string)
	refuse bool // opening it must fail
}

// relax makes changes while a table takes values of any type.
func relax(table string, changes ...string) []string {
	list := []string{
		fmt.Sprintf(`CREATE TEMP TABLE was AS SELECT sql FROM sqlite_schema WHERE name = '%s'`, table),
		`PRAGMA writable_schema=ON`,
		fmt.Sprintf(`UPDATE sqlite_schema SET sql = replace(replace(sql, ' NOT NULL', ''), 'STRICT', '') WHERE name = '%s'`, table),
		`PRAGMA writable_schema=RESET`,
	}
	return append(append(list, changes...), `PRAGMA writable_schema=ON`,
		fmt.Sprintf(`UPDATE sqlite_schema SET sql = (SELECT sql FROM was) WHERE name = '%s'`, table), `PRAGMA writable_schema=RESET`)
}

// count makes rows k from one number to another.
func count(from, to int) string {
	return fmt.Sprintf(`WITH RECURSIVE i(k) AS (SELECT %d UNION ALL SELECT k+1 FROM i WHERE k < %d) `, from, to)
}

const copyExchange = `INSERT INTO exchanges SELECT k, protocol, method, url, http, status, request_headers, request_trailers, response_headers,
	response_trailers, started_ns, duration_ns, client, server, process, tls, outcome, error, bytes_up, bytes_down, source FROM i, exchanges WHERE id = 1`

// olderChunks puts the chunks where older formats have them, as in a file that was
// migrated.
func olderChunks(changes ...string) []string {
	return append([]string{
		`INSERT INTO chunks SELECT n, exchange, seq, size_up = 0, t_ns, 12, NULL, substr(data, 1, 12) FROM segments`,
		`INSERT INTO chunks SELECT last, exchange, seq + 1, 1, t_ns, 12, NULL, substr(data, 13) FROM segments WHERE chunks = 2`,
		`DELETE FROM segments`,
	}, changes...)
}

// sections makes the headers of requests something else.
func sections(fields string) []string {
	return []string{`UPDATE headers SET fields = ` + fields}
}

func forgeries() []forgery {
	most := int64(math.MaxInt64)
	blob := func(size, n int, frame string) []string {
		return []string{
			// size is a multiple of the length of the frame
			fmt.Sprintf(`INSERT INTO blobs (id, sha256, codec, size, data) VALUES (99, x'00', 1, %d, x'%x')`, size, zstdOf(bytes.Repeat([]byte(frame), size/len(frame)))),
			count(1, n) + fmt.Sprintf(`INSERT INTO chunks (n, exchange, seq, dir, t_ns, size, blob) SELECT 1000+k, 1, 1000+k, 1, 0, %d, 99 FROM i`, size),
		}
	}
	return []forgery{
		{name: "the last sequence number", alter: olderChunks(fmt.Sprintf(`UPDATE chunks SET seq = %d WHERE exchange = 1 AND seq = 1`, most))},
		{name: "a payload named 3000 times", alter: blob(64<<20, 3000, "\x00\x00\x00\x00\x02\x08\x01\x00")},
		{name: "a payload of empty frames", alter: blob(7_000_000, 20, "\x00\x00\x00\x00\x00")},
		{name: "a payload of zero bytes in a page of text", alter: append(blob(8<<20, 100, "hello, hello!\x00\x00\x00"),
			`UPDATE exchanges SET request_headers = 0`, `UPDATE headers SET fields = '[["content-type","text/html"]]'`)},
		{name: "the largest numbers", alter: olderChunks(
			fmt.Sprintf(`UPDATE exchanges SET started_ns = %[1]d, duration_ns = %[1]d, bytes_up = %[1]d, bytes_down = %[1]d`, most),
			fmt.Sprintf(`UPDATE chunks SET t_ns = %d`, most), fmt.Sprintf(`UPDATE exchanges SET id = %d WHERE id = 2`, most),
			fmt.Sprintf(`UPDATE chunks SET exchange = %d WHERE exchange = 2`, most),
			fmt.Sprintf(`UPDATE chunks SET n = %d WHERE n = (SELECT max(n) FROM chunks)`, most),
		)},
		{name: "the largest numbers of segments", alter: []string{
			fmt.Sprintf(`UPDATE segments SET t_ns = %[1]d, seq = %[1]d, last = %[1]d WHERE exchange = 1`, most), fmt.Sprintf(`UPDATE segments SET n = %[1]d, last = %[1]d WHERE exchange = 2`, most),
		}},
		{name: "sizes of segments that add up to too much, in flight", alter: []string{fmt.Sprintf(`UPDATE segments SET size_up = %[1]d, size_down = %[1]d`, most), `UPDATE exchanges SET outcome = ''`}},
		{name: "a segment that claims many chunks", alter: []string{`UPDATE segments SET chunks = 1 << 40`}},
		{name: "entries without end", alter: []string{`UPDATE segments SET entries = CAST(replace(hex(zeroblob(5000000)), '00', char(127)) AS BLOB), chunks = 256`}},
		{name: "segments of one payload", alter: append(blob(1<<20, 1, "\x00\x00\x00\x00"), count(1, 5000)+`INSERT INTO segments SELECT 5000+k, 5000+k, 1, 5000+k, 1, 0, 1048576, 0, x'00008080800200', 2, 99, NULL FROM i`)},
		{name: "a relation to itself", alter: []string{count(1, 50_000) + `INSERT INTO relations SELECT 5000+k, 1, 'handshake', x'', k FROM i`}},
		{name: "no headers", alter: []string{`DELETE FROM headers`}},
		{name: "a process without a name", alter: relax("processes", `INSERT INTO processes VALUES (1, -7, NULL, zeroblob(100), 7)`, `UPDATE exchanges SET process = 1`)},
		{name: "the smallest numbers", alter: []string{fmt.Sprintf(`UPDATE exchanges SET id = %d WHERE id = 2`, math.MinInt64+1), fmt.Sprintf(`UPDATE exchanges SET started_ns = %d`, math.MinInt64+1)}},
		{name: "negative sequence numbers", alter: olderChunks(`UPDATE chunks SET seq = -seq - 5`)},
		{name: "negative sizes", alter: olderChunks(`UPDATE chunks SET size = -1`)},
		{name: "negative times", alter: olderChunks(`UPDATE chunks SET t_ns = -1`)},
		{name: "negative counts", alter: []string{`UPDATE exchanges SET bytes_up = -5, status = -1`}},
		{name: "a direction of 77", alter: olderChunks(`UPDATE chunks SET dir = 77`)},
		{name: "sizes that add up to too much, in flight", alter: olderChunks(fmt.Sprintf(`UPDATE chunks SET size = %d`, most), `UPDATE exchanges SET outcome = ''`)},
		{name: "no payload", alter: olderChunks(`UPDATE chunks SET blob = 12345, data = NULL`)},
		{name: "a payload that claims much", alter: append(blob(1<<20, 3, "\x00\x00\x00\x00"), fmt.Sprintf(`UPDATE blobs SET size = %d`, most))},
		{name: "a payload of an unknown codec", alter: append(blob(1<<20, 3, "\x00\x00\x00\x00"), `UPDATE blobs SET codec = 9`)},
		{name: "text for numbers", alter: relax("chunks", olderChunks(`UPDATE chunks SET seq = 'x' || seq`)...)},
		{name: "null for numbers", alter: relax("exchanges", `UPDATE exchanges SET status = NULL, started_ns = NULL`)},
		{name: "null for text", alter: relax("exchanges", `UPDATE exchanges SET url = NULL`)},
		{name: "bytes for text", alter: relax("headers", `UPDATE headers SET fields = zeroblob(1000000)`)},
		{name: "headers that are no list", alter: sections(`'{"a":1}'`)},
		{name: "headers without end", alter: sections(`replace(hex(zeroblob(5000000)), '00', '[')`)},
		{name: "millions of headers", alter: sections(`'[["a","b"]' || replace(hex(zeroblob(1000000)), '00', ',["a","b"]') || ']'`)},
		{name: "a huge header", alter: sections(`'[["a","' || hex(zeroblob(10000000)) || '"]]'`)},
		{name: "huge texts", alter: []string{`UPDATE exchanges SET url = 'https://h/' || hex(zeroblob(10000000)), error = hex(zeroblob(7000000))`}},
		{name: "many exchanges with nothing in them", alter: []string{count(3, 300) + copyExchange}},
		{name: "many chunks with nothing in them", alter: []string{count(1, 100_000) + `INSERT INTO chunks (n, exchange, seq, dir, t_ns, size, data) SELECT 1000+k, 1, 1000+k, 1, 0, 0, NULL FROM i`}},
		{name: "many events", alter: []string{count(1, 100_000) + `INSERT INTO events (n, exchange, kind) SELECT 1000+k, 1, 2 FROM i`}},
		{name: "readings without sense", alter: []string{count(1, 20_000) + `INSERT INTO readings SELECT 5000+k, '/agent.v1.AgentService/Run', 1, k, 'message', 0 FROM i`}},
		{name: "a summary without sense", alter: []string{
			fmt.Sprintf(`INSERT INTO summaries SELECT id, 1, 0, 'x', hex(zeroblob(3000000)), '', '', '', %d, -7, 't' FROM exchanges`, most),
			fmt.Sprintf(`INSERT INTO meta VALUES ('summarised to', CAST('1 %d' AS BLOB))`, most),
		}},
		{name: "a view for a table", alter: []string{`ALTER TABLE chunks RENAME TO held`, `CREATE VIEW chunks AS ` + count(1, math.MaxInt32) + `SELECT n, exchange, seq, dir, t_ns, size, blob, data FROM held, i`}, refuse: true},
		{name: "a trigger", alter: []string{`CREATE TRIGGER gone AFTER INSERT ON summaries BEGIN DELETE FROM exchanges; END`}, refuse: true},
		{name: "a schema of 20 MB", alter: []string{`CREATE TABLE x (a DEFAULT '` + strings.Repeat("x", 20<<20) + `')`}, refuse: true},
		{name: "a second half of noise", patch: func(t *testing.T, file string) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			copy(data[len(data)/2:], bytes.Repeat([]byte{0x5a, 0xff, 0x05}, len(data)/6))
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}},
	}
}

func zstdOf(p []byte) []byte {
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err)
	}
	return enc.EncodeAll(p, nil)
}

// forge makes the capture of a forgery.
func (f *forgery) forge(t *testing.T, file string) {
	t.Helper()
	store, err := store.Create(file, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	headers := captures.Headers{{Name: "content-type", Value: "application/connect+proto"}}
	for range 2 {
		rec, err := store.Begin(captures.Exchange{Method: "POST", URL: "http://127.0.0.1:1/agent.v1.AgentService/Run", HTTP: "2", Started: time.Now(), RequestHeaders: headers})
		if err != nil {
			t.Fatal(err)
		}
		hello := []byte("\x00\x00\x00\x00\x07\x0a\x05hello")
		rec.Chunk(captures.Up, hello)
		rec.Response(200, headers)
		rec.Chunk(captures.Down, hello)
		rec.End(captures.Complete, "")
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	for _, s := range f.alter {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%.200s: %v", s, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if f.patch != nil {
		f.patch(t, file)
	}
}

// readers are all commands that read a capture.
func readers(file, dir string) [][]string {
	in := func(name string) string { return filepath.Join(dir, name) }
	return [][]string{
		{"ls", "--json", file},
		{"show", file, "1"},
		{"show", "--json", file, "2"},
		{"decode", file + "#1/down/0"},
		{"extract", file},
		{"grep", "hello", file},
		{"diff", file, file},
		{"diff", file + "#1", file + "#2"},
		{"schema", "infer", "-o", in("defs"), file},
		{"schema", "check", file},
		{"schema", "match", file},
		{"align", file},
		{"export", "--format", "jsonl", file},
		{"export", "--as-recorded", "--format", "har", file},
		{"export", "--as-recorded", "--format", "pcapng", "-o", in("x.pcapng"), file},
		{"export", "--as-recorded", "--format", "raw", "-o", in("raw"), file},
		{"export", "--as-recorded", "--format", "parquet", "-o", in("parquet"), file},
		{"audit", file},
		{"redact", file, "-o", in("clean.uwc")},
		{"replay", "--dry-run", "--omit-secrets", file, "1"},
		{"probe", "--to", "http://127.0.0.1:1", "--method", "/agent.v1.AgentService/Run", "--from", file + "#1", "--fields", "1-2"},
		{"show", "--timeline", file, "1"},
	}
}

// TestForgedCaptures has every command that reads captures read forged ones: each
// ends soon, in bounded memory, with an exit code of its own. Each forgery is read by
// a fifth of the commands, each command reads a fifth of the forgeries; with
// UNWIRE_LONG=1 all read all.
func TestForgedCaptures(t *testing.T) {
	bin := unwireCommand(t)
	const share = 5
	for i, f := range forgeries() {
		t.Run(f.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "f.uwc")
			f.forge(t, file)
			for k, args := range readers(file, t.TempDir()) {
				if (i+k)%share == 0 || os.Getenv("UNWIRE_LONG") != "" {
					f.run(t, bin, args, 2<<20) // a million frames, which is as many as are decoded, take 1.2 GB
				}
			}
		})
	}
}

// run runs a command, which may take so much memory, in KiB.
func (f *forgery) run(t *testing.T, bin string, args []string, most int64) (stderr string) {
	t.Helper()
	const deadline = time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	stdout, err := os.Create(filepath.Join(t.TempDir(), "out")) // not held: a child's peak begins with ours
	if err != nil {
		t.Fatal(err)
	}
	defer stdout.Close()
	var text bytes.Buffer
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Env = append(os.Environ(), "UNWIRE_MAX_READ=16MiB", "UNWIRE_TOKEN=made-up-token", "NO_COLOR=1")
	cmd.Stdout, cmd.Stderr = stdout, &text
	began := time.Now()
	_ = cmd.Run() // the status is looked at below
	name := strings.ReplaceAll(strings.Join(args, " "), filepath.Dir(args[len(args)-1]), "")
	code := cmd.ProcessState.ExitCode()
	used := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
	t.Logf("%s: %d after %.1fs, %d MiB: %.150s", name, code, time.Since(began).Seconds(), used>>10, text.String())
	switch {
	case ctx.Err() != nil:
		t.Errorf("%s did not end within %v", name, deadline)
	case code != 0 && code != 1 && code != 3 && code < 64 || code > 64+16 || strings.Contains(text.String(), "goroutine "):
		t.Errorf("%s: %v: %.2000s", name, cmd.ProcessState, text.String())
	case f.refuse && code != 3 && args[0] != "diff": // which compares any files
		t.Errorf("%s: %v: it should be refused", name, cmd.ProcessState)
	}
	if limit := max(most, ownPeak(t)); used > limit {
		t.Errorf("%s took %d KiB, may take %d", name, used, limit)
	}
	return text.String()
}

// TestOverLimitShowsWhatWasRead: what, where, which limit, and what to do.
func TestOverLimitShowsWhatWasRead(t *testing.T) {
	bin := unwireCommand(t)
	f := forgeries()[1]
	file := filepath.Join(t.TempDir(), "f.uwc")
	f.forge(t, file)
	for _, args := range [][]string{{"ls", file}, {"show", file, "1"}, {"grep", "hello", file}, {"extract", "--json", file}, {"schema", "check", file}} {
		cmd := exec.Command(bin, args...)
		cmd.Env = append(os.Environ(), "UNWIRE_MAX_READ=256MiB", "NO_COLOR=1")
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		_ = cmd.Run() // the status is looked at
		for _, want := range []string{"f.uwc: exchange 1 contains more than 128 MiB", "UNWIRE_MAX_READ"} {
			if !strings.Contains(stderr.String(), want) {
				t.Errorf("%s: no %q in %.500s", args[0], want, stderr.String())
			}
		}
		if cmd.ProcessState.ExitCode() != 3 || !strings.Contains(stdout.String(), "hello") && args[0] != "ls" && args[0] != "schema" || stdout.Len() == 0 {
			t.Errorf("%s: %v: %.500s", args[0], cmd.ProcessState, stdout.String())
		}
	}
	if text := f.runWith(t, bin, "UNWIRE_MAX_READ=a lot", "ls", file); !strings.Contains(text, "UNWIRE_MAX_READ: must be a size") {
		t.Error(text)
	}
}

// runWith runs a command with a variable set and returns what it printed.
func (f *forgery) runWith(t *testing.T, bin, variable string, args ...string) string {
	t.Helper()
	cmd := exec.Command(bin, args...)
	cmd.Env = append(os.Environ(), variable)
	text, _ := cmd.CombinedOutput() // the text tells
	return string(text)
}
