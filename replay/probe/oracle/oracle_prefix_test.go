package oracle_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/replay"
	"unwire/replay/probe"
	"unwire/replay/probe/oracle"
	"unwire/schema"
)

// A service below a path is asked there: by --method, by what a capture shows, and by verify.
func TestPathPrefix(t *testing.T) {
	t.Parallel()
	m := oneMethod(7)
	files := m.files(t)
	server := startConnect(t, files, func(h http.Handler) http.Handler { return http.StripPrefix("/api/v1", h) })
	method := methods(files)[0]
	full := fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name())

	path := filepath.Join(t.TempDir(), "f.uwc")
	out, err := store.Create(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := captures.Headers{{Name: "content-type", Value: "application/proto"}}
	rec, err := out.Begin(captures.Exchange{Method: "POST", URL: server.url.String() + "/api/v1" + full, HTTP: "1.1", RequestHeaders: h})
	if err != nil {
		t.Fatal(err)
	}
	rec.Response(200, h)
	rec.EndAt(time.Second, captures.Complete, "")
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := store.Open(path, store.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it was only read

	below := server.url.JoinPath("/api/v1/")
	for name, o := range map[string]probe.Options{
		"method":       {To: server.url, Method: "/api/v1" + full},
		"URL":          {To: below, Method: full},
		"both":         {To: below, Method: "/api/v1" + full},
		"capture":      {To: server.url},
		"capture, URL": {To: below},
	} {
		if o.Method == "" {
			if err := o.FromCapture(t.Context(), c, 1, replay.Options{}); err != nil {
				t.Fatal(err)
			}
		}
		res, err := oracle.Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if res.Stopped != "" || res.Runtime != probe.ConnectGo || res.Method != full || len(res.Fields) == 0 {
			t.Errorf("%s: %s of %s: %q, %d fields", name, res.Runtime, res.Method, res.Stopped, len(res.Fields))
		}
	}

	s := schema.FromFiles(method.ParentFile())
	found, err := oracle.FindMethods(t.Context(), c, s, 0)
	if err != nil {
		t.Fatal(err)
	}
	confirmed := 0
	_, err = oracle.VerifyMethods(t.Context(), c, found, oracle.MethodsOptions{
		Options:  probe.Options{Budget: 500},
		Verified: func(v *probe.Verification) error { confirmed += v.Confirmed; return nil },
	})
	if err != nil || confirmed == 0 {
		t.Errorf("verify confirms %d fields: %v", confirmed, err)
	}
	if n := server.executed.Load(); n != 0 {
		t.Errorf("%d requests ran the handler", n)
	}
}
