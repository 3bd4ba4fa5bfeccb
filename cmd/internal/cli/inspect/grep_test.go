package inspect_test

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/cli"
	"unwire/decode/envelope"
)

// BenchmarkGrep looks through a capture for text that is not in it.
func BenchmarkGrep(b *testing.B) {
	file := filepath.Join(b.TempDir(), "a.uwc")
	store, err := store.Create(file, store.Options{KeepSecrets: true})
	if err != nil {
		b.Fatal(err)
	}
	total := 0
	for range 10 {
		rec, err := store.Begin(captures.Exchange{
			Method: "POST", URL: "https://h.example/a.B/Run", HTTP: "2", Status: 200,
			RequestHeaders: captures.Headers{{Name: "content-type", Value: "application/connect+proto"}}, ResponseHeaders: captures.Headers{{Name: "content-type", Value: "application/connect+proto"}},
		})
		if err != nil {
			b.Fatal(err)
		}
		for i := range 2000 {
			text := fmt.Sprintf("delta %d of an answer. %s", i, strings.Repeat("It has more to say than one would think. ", 20))
			m := protowire.AppendString(protowire.AppendTag(nil, 2, protowire.BytesType), text)
			m = protowire.AppendVarint(protowire.AppendTag(m, 3, protowire.VarintType), uint64(i))
			m = protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), m)
			chunk := envelope.Append(nil, 0, m)
			total += len(chunk)
			rec.Chunk(captures.Down, chunk)
		}
		rec.End(captures.Complete, "")
	}
	if err := store.Close(); err != nil {
		b.Fatal(err)
	}
	for name, args := range map[string][]string{"literal": {"-F", "not to be found"}, "fold": {"-i", "not to be found"}, "number": {"--number", "424242"}, "hex": {"--hex", "00ff00ff"}} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(total))
			for b.Loop() {
				if status := cli.Run(append(append([]string{"grep"}, args...), file), strings.NewReader(""), io.Discard, io.Discard); status != app.ExitFinding {
					b.Fatalf("status %d", status)
				}
			}
		})
	}
}
