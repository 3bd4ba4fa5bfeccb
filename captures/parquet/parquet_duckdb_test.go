package parquet

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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
	query := documentedQuery(t)
	cmd := exec.CommandContext(t.Context(), node, script,
		"SELECT count(*), sum(octet_length(data)), count(DISTINCT exchange) FROM 'frames.parquet'",
		"SELECT count(*) FROM 'fields.parquet' JOIN 'frames.parquet' USING (exchange, dir, seq)", query)
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
	if len(lines) != 3 || !strings.HasPrefix(lines[2], "[") {
		t.Errorf("the documented query gives %q", lines[2:])
	}
}

// documentedQuery is the SQL of captures/README.md, in its section on Parquet.
func documentedQuery(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "\n### Parquet\n")
	_, after, ok := strings.Cut(after, "    SELECT ")
	query, _, end := strings.Cut(after, ";")
	if !ok || !end {
		t.Fatal("captures/README.md has no query under Parquet")
	}
	return "SELECT " + query
}
