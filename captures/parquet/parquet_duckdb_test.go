package parquet

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/internal/samples"
	"unwire/captures/need"
	"unwire/captures/store"
)

// TestDuckDB: another reader of Parquet finds the same rows, and the query of
// captures/README.md runs.
func TestDuckDB(t *testing.T) {
	t.Parallel()
	node := need.Node(t, "testdata/duckdb")
	from := samples.Store(t, t.TempDir(), store.Options{})
	samples.Record(t, from, 6, 40)
	var frames, fields bytes.Buffer
	done, err := Export(context.Background(), &frames, &fields, from, Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{"frames.parquet": frames.Bytes(), "fields.parquet": fields.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script, err := filepath.Abs("testdata/duckdb/query.mjs")
	if err != nil {
		t.Fatal(err)
	}
	queries := documentedQueries(t)
	cmd := exec.CommandContext(t.Context(), node, script,
		"SELECT count(*), sum(octet_length(data)), count(DISTINCT exchange) FROM 'frames.parquet'",
		"SELECT count(*) FROM 'fields.parquet' JOIN 'frames.parquet' USING (exchange, dir, seq)", queries[0], queries[1])
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	var size, exchanges int
	seen := map[int64]bool{}
	rows, _, _ := export(t, from)
	for _, f := range rows {
		size += len(f.Data)
		if !seen[f.Exchange] {
			seen[f.Exchange] = true
			exchanges++
		}
	}
	if want := fmt.Sprintf(`[["%d","%d","%d"]]`, done.Frames, size, exchanges); lines[0] != want {
		t.Errorf("DuckDB finds %s, want %s", lines[0], want)
	}
	if want := fmt.Sprintf(`[["%d"]]`, done.Fields); lines[1] != want {
		t.Errorf("DuckDB joins %s fields, want %s", lines[1], want)
	}
	if len(lines) != 4 || !strings.HasPrefix(lines[2], "[") {
		t.Errorf("the documented queries give %q", lines[2:])
	}
}

// documentedQueries is the SQL of captures/README.md, in its section on Parquet.
func documentedQueries(t *testing.T) (queries []string) {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "\n### Parquet\n")
	section, _, _ := strings.Cut(after, "\n### ")
	for _, part := range strings.Split(section, "\n    SELECT ")[1:] {
		query, _, _ := strings.Cut(part, ";\n")
		queries = append(queries, "SELECT "+query)
	}
	if len(queries) != 2 {
		t.Fatalf("captures/README.md has %d queries under Parquet, want 2", len(queries))
	}
	return queries
}

// TestFirstSeen: the documented query finds which fields appeared in which version, over the exports of two captures.
func TestFirstSeen(t *testing.T) {
	t.Parallel()
	node := need.Node(t, "testdata/duckdb")
	dir := t.TempDir()
	for i, message := range []string{"\x0a\x02hi", "\x0a\x02hi\x10\x05"} {
		s, err := store.Create(filepath.Join(dir, fmt.Sprint(i, ".uwc")), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		headers := captures.Headers{{Name: "content-type", Value: "application/proto"}}
		rec, err := s.Begin(captures.Exchange{
			Method: "POST", URL: "https://h.example/shop.v1.Shop/Buy", HTTP: "2", Status: 200, Started: time.Date(2026, 1, 2+i, 0, 0, 0, 0, time.UTC),
			RequestHeaders: headers, ResponseHeaders: headers, Process: captures.Process{Client: "shop", Version: fmt.Sprint("1.", i)},
		})
		if err != nil {
			t.Fatal(err)
		}
		rec.Chunk(captures.Up, []byte(message))
		rec.End(captures.Complete, "")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		from, err := store.Open(s.Path, store.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer from.Close()
		out := filepath.Join(dir, fmt.Sprint("tables", i))
		if err := os.Mkdir(out, 0o700); err != nil {
			t.Fatal(err)
		}
		var frames, fields bytes.Buffer
		if _, err := Export(t.Context(), &frames, &fields, from, Options{}); err != nil {
			t.Fatal(err)
		}
		for name, data := range map[string][]byte{"frames.parquet": frames.Bytes(), "fields.parquet": fields.Bytes()} {
			if err := os.WriteFile(filepath.Join(out, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	script, err := filepath.Abs("testdata/duckdb/query.mjs")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, script, documentedQueries(t)[1])
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := `[["shop","1.0",TIME,"shop.v1.Shop","Buy","up","1","string","2"],["shop","1.1",TIME,"shop.v1.Shop","Buy","up","2","varint","1"]]`
	// The frames have the times at which they were recorded, by which the rows are sorted.
	got := regexp.MustCompile(`"20[0-9-]+ [0-9:.+]+"`).ReplaceAllString(strings.TrimSpace(string(out)), "TIME")
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
