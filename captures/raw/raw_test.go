package raw_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"unwire/captures"
	"unwire/captures/internal/samples"
	"unwire/captures/raw"
	"unwire/captures/store"
	"unwire/decode"
)

var safe = regexp.MustCompile(`^\d{4,}-(up|down)-\d{4,}\.bin$`)

// TestExport: every frame has a file with its data and a line that finds it.
func TestExport(t *testing.T) {
	ctx := context.Background()
	from := samples.Store(t, t.TempDir(), store.Options{})
	samples.Record(t, from, 5, 20)
	dir := filepath.Join(t.TempDir(), "new", "folder")
	done, err := raw.Export(ctx, dir, from, 10_000)
	if err != nil || done.Exchanges != 20 || done.Frames < 20 {
		t.Fatalf("%+v, %v", done, err)
	}
	index, err := os.ReadFile(filepath.Join(dir, "index.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	compressed := 0
	for sc := bufio.NewScanner(bytes.NewReader(index)); sc.Scan(); {
		var l struct {
			V, Seq, Len    int
			File, Dir, URL string
			Exchange       int64
			Compressed     bool
			N              int `json:"data_len"`
		}
		if err := json.Unmarshal(sc.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		if !safe.MatchString(l.File) || seen[l.File] || l.V != 1 {
			t.Errorf("%s", sc.Bytes())
		}
		seen[l.File] = true
		data, err := os.ReadFile(filepath.Join(dir, l.File))
		if err != nil {
			t.Fatal(err)
		}
		ex, err := decode.Decode(ctx, from, l.Exchange, decode.Options{NoTrees: true})
		if err != nil {
			t.Fatal(err)
		}
		d := captures.Up
		if l.Dir == "down" {
			d = captures.Down
		}
		f := ex.Frame(d, l.Seq)
		if f == nil || !bytes.Equal(f.Data, data) || l.N != len(data) || l.Len != len(f.Raw) || l.URL != ex.URL {
			t.Errorf("%s: %d bytes, not the frame's", sc.Bytes(), len(data))
		}
		if l.Compressed {
			compressed++
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != done.Frames+1 || len(seen) != done.Frames || compressed == 0 {
		t.Errorf("%d files, %d lines, %d compressed frames, of %+v, %v", len(files), len(seen), compressed, done, err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f.Name(), info.Mode(), err)
		}
	}
	if _, err := raw.Export(ctx, dir, from, 10_000); !errors.Is(err, raw.ErrNotEmpty) {
		t.Errorf("into a folder with files: %v", err)
	}
}

// TestTooMany: an export that would write too many files fails before it writes those of the exchange.
func TestTooMany(t *testing.T) {
	from := samples.Store(t, t.TempDir(), store.Options{KeepSecrets: true})
	samples.Record(t, from, 1, 20)
	dir := filepath.Join(t.TempDir(), "out")
	all, err := raw.Export(t.Context(), dir, from, 10_000)
	if err != nil || all.Frames < 20 {
		t.Fatal(all, err)
	}
	if done, err := raw.Export(t.Context(), filepath.Join(t.TempDir(), "out"), from, all.Frames); err != nil || done != all {
		t.Errorf("as many files as allowed: %+v, %v", done, err)
	}
	dir = filepath.Join(t.TempDir(), "out")
	done, err := raw.Export(t.Context(), dir, from, all.Frames-1)
	var many *raw.TooManyError
	if !errors.As(err, &many) || many.Before+many.Frames != all.Frames || many.Before != done.Frames {
		t.Errorf("one file more than allowed: %+v, %v", done, err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != done.Frames+1 {
		t.Errorf("%d files, %v; want the index and the files of the exchanges before", len(files), err)
	}
}

func BenchmarkExport(b *testing.B) {
	from := samples.Store(b, b.TempDir(), store.Options{KeepSecrets: true})
	samples.Record(b, from, 1, 200)
	dir := b.TempDir()
	frames := 0
	for i := 0; b.Loop(); i++ {
		done, err := raw.Export(context.Background(), filepath.Join(dir, strconv.Itoa(i)), from, 10_000)
		if err != nil {
			b.Fatal(err)
		}
		frames += done.Frames
	}
	b.ReportMetric(float64(frames)/b.Elapsed().Seconds(), "frames/s")
}

// TestConnections: a message of a WebSocket is a file, and so are all bytes of a direction
// of a connection without HTTP.
func TestConnections(t *testing.T) {
	from := samples.Store(t, t.TempDir(), store.Options{KeepSecrets: true})
	begin := func(ex captures.Exchange) captures.Recording {
		rec, err := from.Begin(ex)
		if err != nil {
			t.Fatal(err)
		}
		return rec
	}
	opened := begin(captures.Exchange{Method: "GET", URL: "https://h/", HTTP: "1.1", Status: 101})
	opened.EndAt(1, captures.Complete, "")
	socket := begin(captures.Exchange{Transport: captures.WebSocket, URL: "wss://h/"})
	socket.Relate(captures.HandshakeOf, opened.ID())
	socket.MessageAt(captures.Up, 1, captures.OpText, []byte("he"))
	socket.MessageAt(captures.Up, 2, captures.OpContinuation|captures.OpFinal, []byte("llo"))
	socket.EndAt(3, captures.Complete, "")
	mail := begin(captures.Exchange{Transport: captures.RawTCP, URL: "tcp://h:25"})
	mail.ChunkAt(captures.Down, 1e6, []byte("220 "))
	mail.ChunkAt(captures.Up, 2e6, []byte("QUIT"))
	mail.ChunkAt(captures.Down, 3e6, []byte("hi"))
	mail.EndAt(4e6, captures.Complete, "")
	if err := from.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	done, err := raw.Export(context.Background(), dir, from, 10_000)
	if err != nil || done.Exchanges != 3 || done.Frames != 3 {
		t.Fatalf("%+v, %v", done, err)
	}
	for name, want := range map[string]string{"0002-up-0000.bin": "hello", "0003-up.bin": "QUIT", "0003-down.bin": "220 hi"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	index, err := os.ReadFile(filepath.Join(dir, "index.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"transport":"websocket","opcode":"text","handshake":1`,
		`"file":"0003-down.bin","exchange":3,"dir":"down","seq":0,"t_ms":1,`, `"chunks":[{"t_ms":1,"len":4},{"t_ms":3,"len":2}]`,
	} {
		if !bytes.Contains(index, []byte(want)) {
			t.Errorf("%s is not in %s", want, index)
		}
	}
}
