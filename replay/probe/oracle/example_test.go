package oracle_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/sourcecontextpb"

	"unwire/replay/probe"
	"unwire/replay/probe/oracle"
)

// A server's parse errors reveal the fields of a request. The handler never runs: every
// message of the probe is malformed.
func ExampleRun() {
	type request = sourcecontextpb.SourceContext // one field: string file_name = 1
	find := func(_ context.Context, r *connect.Request[request]) (*connect.Response[request], error) {
		fmt.Println("the handler ran")
		return connect.NewResponse(r.Msg), nil
	}
	mux := http.NewServeMux()
	mux.Handle("/files.v1.Files/Find", connect.NewUnaryHandler("/files.v1.Files/Find", find))
	server := httptest.NewServer(mux)
	defer server.Close()

	to, err := url.Parse(server.URL)
	if err != nil {
		log.Fatal(err)
	}
	result, err := oracle.Run(context.Background(), probe.Options{
		To: to, Method: "/files.v1.Files/Find", Names: []string{"fileName", "lineNumber"},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Runtime)
	for _, f := range result.Fields {
		fmt.Println(f.Number, f.Kind, f.Name)
	}
	// Output:
	// connect-go
	// 1 string fileName
}
