package replay_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/replay"
	"unwire/replay/edit"
)

// A captured call is sent to another server, with another name in it.
func Example() {
	ctx := context.Background()
	greet := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // the name is all of the body but {"name":"…"}
		w.Header().Set("content-type", "application/json")
		fmt.Fprintf(w, `{"greeting":"Hello, %s!"}`, body[len(`{"name":"`):len(body)-len(`"}`)])
	}
	server := httptest.NewServer(http.HandlerFunc(greet))
	defer server.Close()

	dir, err := os.MkdirTemp("", "replay")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	capture, err := store.Create(filepath.Join(dir, "capture.uwc"), store.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer capture.Close()
	id := record(capture, server.URL, `{"name":"Ada"}`, `{"greeting":"Hello, Ada!"}`)
	if err := capture.Flush(ctx); err != nil {
		log.Fatal(err)
	}

	// The request is data: it can still be edited.
	other, err := edit.Parse("set", "name=Grace")
	if err != nil {
		log.Fatal(err)
	}
	request, err := replay.NewRequest(ctx, capture, id, replay.Changes{Edits: []edit.Edit{other}})
	if err != nil {
		log.Fatal(err)
	}

	// The plan is resolved and checked: what it describes is what is sent.
	plan, err := request.Plan(ctx, replay.Options{})
	if err != nil {
		log.Fatal(err)
	}
	d := plan.Description()
	fmt.Printf("%s %s/%s: %s\n", d.Method, d.Service, d.RPC, d.Frames[0].Data)

	result, err := plan.Send(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Comparison, result.Code)
	for _, c := range result.Diff {
		fmt.Printf("%s was %q and is %q\n", c.Path, c.Old, c.New)
	}

	// Output:
	// POST greet.v1.Greeter/Greet: {"name":"Grace"}
	// differs ok
	// @down/0 greeting was "Hello, Ada!" and is "Hello, Grace!"
}

// record writes a unary call to a capture, as a proxy does, and returns its number.
func record(capture *store.Store, server, question, answer string) int64 {
	json := captures.Headers{{Name: "content-type", Value: "application/json"}}
	call, err := capture.Begin(captures.Exchange{
		Method: "POST", URL: server + "/greet.v1.Greeter/Greet", HTTP: "1.1",
		RequestHeaders: append(captures.Headers{{Name: "connect-protocol-version", Value: "1"}}, json...),
	})
	if err != nil {
		log.Fatal(err)
	}
	call.Chunk(captures.Up, []byte(question))
	call.Response(http.StatusOK, json)
	call.Chunk(captures.Down, []byte(answer))
	call.End(captures.Complete, "")
	return call.ID()
}
