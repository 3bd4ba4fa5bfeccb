package har_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"unwire/captures/har"
	"unwire/captures/store"
)

// Import an HTTP Archive of a browser into a capture.
func ExampleImport() {
	const archive = `{"log":{"version":"1.2","entries":[{
		"startedDateTime":"2026-01-02T03:04:05.000Z","time":12,
		"request":{"method":"GET","url":"https://api.example/items?page=2","httpVersion":"HTTP/2","headers":[{"name":"accept","value":"*/*"}]},
		"response":{"status":200,"httpVersion":"HTTP/2","headers":[{"name":"content-type","value":"text/plain"}],
			"content":{"size":5,"mimeType":"text/plain","text":"hello"}}}]}}`
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()

	s, err := store.Create(filepath.Join(dir, "a.uwc"), store.Options{})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	report, err := har.Import(ctx, strings.NewReader(archive), s)
	if err != nil {
		panic(err)
	}
	fmt.Println(report.Exchanges, "imported,", report.Skipped, "skipped")
	for ex, err := range s.Exchanges(ctx) {
		if err != nil {
			panic(err)
		}
		fmt.Println(ex.Method, ex.URL, ex.HTTP, ex.Status, ex.BytesDown, "bytes")
	}
	// Output:
	// 1 imported, 0 skipped
	// GET https://api.example/items?page=2 2 200 5 bytes
}
