package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/internal/require"
)

// older copies a capture of an older format: an exchange with three chunks, one that
// failed, and a reading.
func older(t testing.TB, format int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "old.uwc")
	whole := require.Value(os.ReadFile(fmt.Sprintf("testdata/format%d.uwc", format)))(t)
	require.NoError(t, os.WriteFile(path, whole, 0o600))
	return path
}

// TestOlderFormats: a file of an older format reads as it is, and the same when a recorder
// has brought it up to date and added to it.
func TestOlderFormats(t *testing.T) {
	h := captures.Headers{{Name: "content-type", Value: "application/proto"}, {Name: "x-odd", Value: "é"}, {Name: "x-bin", Value: "\xff"}}
	first := captures.Exchange{
		ID: 1, Method: "POST", URL: "https://h.example/p.S/M", HTTP: "2", Status: 200, RequestHeaders: h, ResponseHeaders: h,
		ResponseTrailers: captures.Headers{{Name: "grpc-status", Value: "0"}}, Started: time.Unix(1700000000, 0).UTC(), Duration: 4 * time.Millisecond,
		Client: "127.0.0.1:1", Server: "127.0.0.1:2", TLS: captures.TLS{Version: "1.3"}, Outcome: captures.Complete, BytesUp: 5, BytesDown: 5003, Source: "proxy",
	}
	check := func(name string, s *Store) {
		ex := require.All(t, s.Exchanges(t.Context()))
		if len(ex) < 2 || fmt.Sprintf("%+v", *ex[0]) != fmt.Sprintf("%+v", first) || ex[1].Error != "no connection" || len(ex[1].RequestHeaders) != 1 {
			t.Errorf("%s: %+v", name, ex[0])
		}
		if l := require.All(t, s.Listing(t.Context(), 5)); len(l) != len(ex) || l[0].Summary != nil || l[0].Exchange.BytesDown != 5003 {
			t.Errorf("%s: listing %+v", name, l)
		}
		chunks := require.All(t, s.Chunks(t.Context(), 1, 0))
		if len(chunks) != 3 || !bytes.Equal(chunks[1].Data, bytes.Repeat([]byte("a"), 5000)) || string(chunks[2].Data) != "end" || chunks[2].T != 3*time.Millisecond {
			t.Errorf("%s: chunks %v", name, chunks)
		}
		if part := require.All(t, s.Chunks(t.Context(), 1, 2)); len(part) != 1 || part[0].Seq != 2 {
			t.Errorf("%s: from 2: %v", name, part)
		}
		want := []captures.Reading{{Method: "/p.S/M", Dir: captures.Down, Path: "1.2", Type: "sint32"}}
		if got := require.Value(s.Readings(t.Context(), ""))(t); !slices.Equal(got, want) {
			t.Errorf("%s: readings %v", name, got)
		}
		if got := require.Value(s.Readings(t.Context(), "/p.S/N"))(t); len(got) != 0 {
			t.Errorf("%s: readings of another method %v", name, got)
		}
	}
	for format := 1; format <= 2; format++ {
		path := older(t, format)
		s := require.Value(Open(path, ReadOptions{}))(t)
		check(fmt.Sprintf("format %d", format), s)
		require.NoError(t, s.Close())

		w := require.Value(Create(path, Options{KeepSecrets: true}))(t)
		r := require.Value(w.Begin(captures.Exchange{Method: "GET", URL: "https://h/new", RequestHeaders: h}))(t)
		r.Chunk(captures.Up, []byte("new"))
		r.End(captures.Complete, "")
		require.NoError(t, w.Close())

		s = require.Value(Open(path, ReadOptions{}))(t)
		name := fmt.Sprintf("format %d, migrated", format)
		check(name, s)
		if got := require.All(t, s.Chunks(t.Context(), 3, 0)); len(got) != 1 || string(got[0].Data) != "new" {
			t.Errorf("%s: the new exchange: %v", name, got)
		}
		var sections int
		require.NoError(t, s.readDB.QueryRow("SELECT count(*) FROM headers").Scan(&sections))
		if sections != 3 {
			t.Errorf("%s: %d sections of headers", name, sections)
		}
		require.NoError(t, s.Close())
	}
}
