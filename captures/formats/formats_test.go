package formats_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"unwire/captures"
	"unwire/captures/formats"
	"unwire/captures/internal/samples"
	"unwire/captures/store"
)

// TestRoundTrip: what is exported in a format that is also imported comes back: exchanges
// of every transport, their chunks with times and opcodes, and their relations. What a
// format cannot hold is counted.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, e := range formats.Exporters() {
		if e.Name != "jsonl" && e.Name != "har" {
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) { checkRoundTrip(t, rt, &e) })
		})
	}
}

func checkRoundTrip(t *testing.T, rt *rapid.T, e *formats.Exporter) {
	dir, err := os.MkdirTemp("", "unwire-formats-")
	if err != nil {
		rt.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	from, to := create(rt, filepath.Join(dir, "a.uwc")), create(rt, filepath.Join(dir, "b.uwc"))
	defer from.Close()
	defer to.Close()
	samples.RecordTransports(rt, from)
	if err := from.Flush(ctx); err != nil {
		rt.Fatal(err)
	}
	var file bytes.Buffer
	done, err := e.Write(ctx, &file, from, formats.ExportOptions{})
	if err != nil {
		rt.Fatal(err)
	}
	in, err := formats.Open(bytes.NewReader(file.Bytes()), file.Bytes()[:min(file.Len(), formats.HeadBytes)])
	if err != nil {
		rt.Fatal(err)
	}
	imported, err := in.Import(ctx, formats.ImportOptions{Store: to})
	if err != nil {
		rt.Fatal(err)
	}

	want := samples.Read(t, from)
	all := len(want)
	if e.Name == "har" {
		want = slices.DeleteFunc(want, func(w samples.Whole) bool { return w.Transport == captures.RawTCP || w.Transport == captures.RawTLS })
	}
	if done.Exchanges != len(want) || done.NotHTTP != all-len(want) || int(imported.Exchanges()) != len(want) {
		rt.Errorf("%+v, imported %d of %d exchanges", done, imported.Exchanges(), all)
	}
	if d := cmp.Diff(samples.Renumbered(want), samples.Renumbered(samples.Read(t, to)), cmpopts.EquateEmpty()); d != "" {
		rt.Fatalf("exported (-), imported (+):\n%s", d)
	}
}

func create(rt *rapid.T, name string) *store.Store {
	s, err := store.Create(name, store.Options{KeepSecrets: true})
	if err != nil {
		rt.Fatal(err)
	}
	return s
}
