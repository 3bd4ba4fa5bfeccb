package store

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/need"
)

var updateFormat = flag.Bool("update", false, "write the results of the queries in FORMAT.md anew")

// example is a query in FORMAT.md with what it yields.
var example = regexp.MustCompile("(?s)```sql\n([^`]*)```\n```text\n([^`]*)```\n")

// TestFormatWithSQLiteShell: the queries that FORMAT.md shows yield in the sqlite3 shell what it
// says, for a capture that this package writes.
func TestFormatWithSQLiteShell(t *testing.T) {
	t.Parallel()
	shell := need.Program(t, "sqlite3", "sqlite3")
	path := filepath.Join(t.TempDir(), "F.uwc")
	writeDocumented(t, path)

	text, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	queries := 0
	got := example.ReplaceAllStringFunc(string(text), func(block string) string {
		queries++
		m := example.FindStringSubmatch(block)
		out, err := exec.Command(shell, "-batch", "-readonly", path, m[1]).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", m[1], err, out)
		}
		if string(out) != m[2] && !*updateFormat {
			t.Errorf("%syields\n%s\nand FORMAT.md says\n%s", m[1], out, m[2])
		}
		return fmt.Sprintf("```sql\n%s```\n```text\n%s```\n", m[1], out)
	})
	if queries < 5 {
		t.Errorf("FORMAT.md has %d queries: the test looked at nothing", queries)
	}
	if *updateFormat {
		if err := os.WriteFile("FORMAT.md", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// writeDocumented records the capture of the examples: a unary call, and a WebSocket with its
// handshake.
func writeDocumented(t *testing.T, path string) {
	t.Helper()
	// Without redaction nothing is held back, and with one chunk for each exchange the segments do
	// not depend on when the writer commits.
	s, err := Create(path, Options{KeepSecrets: true})
	if err != nil {
		t.Fatal(err)
	}
	begin := func(ex captures.Exchange) captures.Recording {
		ex.Started = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		rec, err := s.Begin(ex)
		if err != nil {
			t.Fatal(err)
		}
		return rec
	}
	call := begin(captures.Exchange{
		Method: "POST", URL: "https://api.example/shop.v1.Shop/Buy", HTTP: "2", Status: 200,
		RequestHeaders: captures.Headers{{Name: "content-type", Value: "application/proto"}, {Name: "accept", Value: "*/*"}},
	})
	call.ChunkAt(captures.Up, time.Millisecond, []byte("\x0a\x03tea"))
	call.EndAt(3*time.Millisecond, captures.Complete, "")

	shake := begin(captures.Exchange{Method: "GET", URL: "https://api.example/chat", HTTP: "1.1", Status: 101})
	shake.EndAt(time.Millisecond, captures.Complete, "")
	ws := begin(captures.Exchange{Transport: captures.WebSocket, URL: "wss://api.example/chat", HTTP: "1.1"})
	ws.Relate(captures.HandshakeOf, shake.ID())
	ws.MessageAt(captures.Up, 2*time.Millisecond, captures.OpText|captures.OpFinal, []byte("hello"))
	ws.EndAt(5*time.Millisecond, captures.Complete, "")

	place := captures.Place{Exchange: call.ID(), Dir: captures.Up, Path: "1"}
	if err := s.PutNote(t.Context(), captures.Note{Place: place, Kind: captures.TextNote, Value: "the product"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
