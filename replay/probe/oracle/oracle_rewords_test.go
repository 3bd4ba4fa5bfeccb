package oracle_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"unwire/replay/probe"
	"unwire/replay/probe/oracle"
)

// says answers every request with a status and a body.
func says(status int, contentType, body string) func(http.Handler) http.Handler {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body) //nolint:errcheck // it is thrown away
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			io.WriteString(w, body) //nolint:errcheck // the client sees it
		})
	}
}

// rewords changes what a server says.
func rewords(change func(string) string) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
			w.WriteHeader(rec.Code)
			io.WriteString(w, change(rec.Body.String())) //nolint:errcheck // the client sees it
		})
	}
}

// A strictJSON refuses unknown names, as protojson does unless it is told not to.
type strictJSON struct{}

func (strictJSON) Name() string { return "json" }

func (strictJSON) Marshal(m any) ([]byte, error) { return protojson.Marshal(m.(proto.Message)) } //nolint:forcetypeassert // all messages are

func (strictJSON) Unmarshal(data []byte, m any) error {
	return protojson.Unmarshal(data, m.(proto.Message)) //nolint:forcetypeassert // all messages are
}

// Whatever a server says, nothing wrong is claimed, and it is told why there is
// no more.
func TestOddServers(t *testing.T) {
	m := oneMethod(1)
	files := m.files(t)
	md := methods(files)[0].Input()
	names := append([]string{"nobody", "is_it"}, requestNames(md)...)
	for _, c := range []struct {
		name     string
		around   func(http.Handler) http.Handler
		opts     []connect.HandlerOption
		word     string // in what it says
		executed int    // that may have been, as the probe says
		fields   bool   // some are found all the same
	}{
		{name: "the same canary to everything", word: "so unwire reports no fields", around: says(400, "application/json", `{"code":"invalid_argument","message":"parse binary: illegal tag: field no 89 wire type 7"}`)},
		{name: "the same tag to everything", word: "so unwire reports no fields", around: says(500, "application/json", `{"code":"internal","message":"parse binary: illegal tag: field no 0 wire type 7"}`)},
		{name: "an end to everything", word: "so unwire reports no fields", around: says(500, "application/json", `{"code":"internal","message":"illegal tag, premature EOF: wire type"}`)},
		{name: "no text to everything", word: "so unwire reports no fields", around: says(400, "application/json", `{"code":"invalid_argument","message":"unmarshal message: string field contains invalid UTF-8"}`)},
		{name: "no wire format to everything", word: "no string field", around: says(400, "application/json", `{"code":"invalid_argument","message":"unmarshal message: proto: cannot parse invalid wire-format data"}`)},
		{name: "a page", word: "check that --to is the URL", around: says(200, "text/html", "<!DOCTYPE html><title>Welcome</title>")},
		{name: "an error with the status 200", word: "may have executed", executed: 1, around: says(200, "application/json", `{"code":"invalid_argument","message":"illegal tag"}`)},
		{name: "an error of the handler's", word: "may have executed", executed: 1, around: says(404, "application/json", `{"code":"not_found","message":"no such user"}`)},
		{name: "a validation's words", word: "so unwire reports no fields", around: says(400, "application/json", `{"code":"invalid_argument","message":"validation error: user.name: value length must be at least 1 characters [string.min_len]"}`)},
		{name: "nothing", word: "no answer", around: func(http.Handler) http.Handler {
			return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		}},
		{name: "in small letters", word: "contains no error of the server's", around: rewords(func(s string) string { return strings.ToLower(s) })},
		{name: "in another language", word: "so unwire reports no fields", around: rewords(func(s string) string {
			return strings.NewReplacer("proto:", "Protobuf:", "unmarshal message", "Nachricht", "cannot parse", "unlesbar", "wire-format", "Format").Replace(s)
		})},
		{name: "strict about names", fields: true, word: "each name that does not exist takes one request", opts: []connect.HandlerOption{connect.WithCodec(strictJSON{})}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := startConnect(t, files, c.around, c.opts...)
			ask := names
			if c.fields {
				for i := range 400 {
					ask = append(ask, fmt.Sprintf("none_of_these_%d", i))
				}
			}
			res, err := oracle.Run(context.Background(), probe.Options{To: server.url, Method: call, Names: ask, Type: true, Refine: true, Depth: 1})
			if err != nil {
				t.Fatal(err)
			}
			compareAll(t, res, md)
			checkNames(t, res, md)
			checkNested(t, res, md)
			if said := res.Stopped + fmt.Sprint(res.Notes); !strings.Contains(said, c.word) || res.Executed != c.executed || c.fields != (len(res.Fields) > 0) {
				t.Errorf("%s: %d executed, %d fields in %d requests", said, res.Executed, len(res.Fields), res.Requests)
			}
			if server.executed.Load() != 0 {
				t.Error("the handler ran")
			}
		})
	}
}

// A server that takes small messages only is asked in small ones.
func TestSmallMessages(t *testing.T) {
	m := newSchemaMaker(4)
	m.method("Call", 40, 300, false)
	files := m.files(t)
	md := methods(files)[0].Input()
	names := dictionary(md, 600)
	run := func(t *testing.T, to *url.URL) *probe.Result {
		t.Helper()
		res, err := oracle.Run(context.Background(), probe.Options{To: to, Method: call, Type: true, Refine: true, Names: names, Known: knownName(md)})
		if err != nil || res.Stopped != "" || res.Executed != 0 {
			t.Fatalf("%v: %+v", err, res)
		}
		return res
	}
	text := func(res *probe.Result) (s string) {
		for _, f := range res.Fields {
			s += fmt.Sprintln(f.Number, f.Class, f.Kind, f.Label, f.Name, f.Type)
		}
		return s
	}
	t.Run("go", func(t *testing.T) {
		whole := run(t, startConnect(t, files, nil).url)
		res := run(t, startConnect(t, files, nil, connect.WithReadMaxBytes(4096)).url)
		if text(res) != text(whole) {
			t.Errorf("%s\nwithout a limit:\n%s", text(res), text(whole))
		}
		t.Logf("%d requests, %d without a limit", res.Requests, whole.Requests)
	})
	for _, version := range esVersions() {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			server := startNode(t, version, m.set(), `{"most":4096}`)
			res := run(t, server.url)
			v := compareAll(t, res, md)
			checkNames(t, res, md)
			t.Logf("%+v in %d requests", v, res.Requests)
			// In small messages, protobuf-es 1.10 and 2.7 decide less, because of how they parse the entries of maps.
			if v.found != v.fields || version == es2 && v.classed != v.fields || server.executed(t) != 0 {
				t.Errorf("%+v", v)
			}
		})
	}
}
