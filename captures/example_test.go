package captures_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"unwire/captures"
	"unwire/captures/store"
)

// Record an exchange into a capture file, and read it back.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path, ctx := filepath.Join(dir, "a.uwc"), context.Background()

	s, err := store.Create(path, store.Options{})
	if err != nil {
		panic(err)
	}
	rec, err := s.Begin(captures.Exchange{
		Method: "POST", URL: "https://api.example/chat.v1.Chat/Send", HTTP: "2",
		RequestHeaders: captures.Headers{
			{Name: "content-type", Value: "application/json"},
			{Name: "authorization", Value: "Bearer example-token-0123456789"},
		},
	})
	if err != nil {
		panic(err)
	}
	rec.Chunk(captures.Up, []byte(`{"text":"hello"}`))
	rec.Response(200, captures.Headers{{Name: "content-type", Value: "application/json"}})
	rec.Chunk(captures.Down, []byte(`{"id":7}`))
	rec.End(captures.Complete, "")
	if err := s.Close(); err != nil {
		panic(err)
	}

	// Anybody can read the file now, or while it is being recorded.
	r, err := store.Open(path, store.ReadOptions{})
	if err != nil {
		panic(err)
	}
	defer r.Close()
	for ex, err := range r.Exchanges(ctx) {
		if err != nil {
			panic(err)
		}
		fmt.Println(ex.Method, ex.URL, ex.Status, ex.Outcome)
		fmt.Println("token stored:", ex.RequestHeaders.Get("authorization") == "Bearer example-token-0123456789")
		for c, err := range r.Chunks(ctx, ex.ID, 0) {
			if err != nil {
				panic(err)
			}
			fmt.Println(c.Dir, string(c.Data))
		}
	}
	// Output:
	// POST https://api.example/chat.v1.Chat/Send 200 complete
	// token stored: false
	// up {"text":"hello"}
	// down {"id":7}
}
