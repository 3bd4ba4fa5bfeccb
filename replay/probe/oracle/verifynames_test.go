package oracle_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/replay/probe"
	"unwire/replay/probe/oracle"
)

// namesTruth is what servers have, and namesLie definitions that differ in names and types alone.
const (
	namesTruth = `syntax = "proto3"; package probe.v1; import "google/protobuf/wrappers.proto";
enum Mood { MOOD_UNSPECIFIED = 0; MOOD_GLAD = 1; }
enum Color { COLOR_UNSPECIFIED = 0; COLOR_RED = 1; }
message Below { string first_name = 1; bool wide = 2; int32 depth_of = 3; }
message Request { string page_token = 1; Mood mood = 2; Below below = 3; repeated int32 sizes = 4; bool deep = 5; map<string, int32> counts = 6; Color color = 7;
  map<string, Mood> moods = 8; map<string, Below> belows = 9; map<string, sfixed32> fixed = 10; map<bool, int32> keyed = 11; map<string, google.protobuf.StringValue> wrapped = 12; map<string, float> floats = 13; map<string, Mood> kept = 14; }
service Service { rpc Call(Request) returns (Request); }
`
)

// A namedServer counts its handlers.
type namedServer struct {
	url      *url.URL
	executed func() int
	types    bool // it reports the types of enums
}

func nodeServer(t *testing.T, version esVersion, set *descriptorpb.FileDescriptorSet) namedServer {
	t.Helper()
	n := startNode(t, version, set)
	return namedServer{n.url, func() int { return n.executed(t) }, true}
}

// What names were not asked is open; asked, wrong names and enum types are contradicted,
// right ones never, and no handler runs.
func TestVerifyNames(t *testing.T) {
	replace := strings.NewReplacer("page_token", "page_cursor", "Mood mood", "Color mood", "bool wide", "bool tall", "map<string, int32> counts", "map<string, int64> counts", "map<string, Mood> moods", "map<string, Color> moods",
		"map<string, Below> belows", "map<string, Request> belows", "map<string, sfixed32> fixed", "map<string, float> fixed", "int32 depth_of", "int32 depth_of")
	truth, files := compiled(t, namesTruth)
	_, lies := compiled(t, replace.Replace(namesTruth))
	is, lie := methods(files)[0].Input(), methods(lies)[0].Input()
	goServer := startConnect(t, files, nil)
	for name, server := range map[string]namedServer{
		"go":   {goServer.url, func() int { return int(goServer.executed.Load()) }, false},
		"es 1": nodeServer(t, es1, truth),
		"es 2": nodeServer(t, es2, truth),
	} {
		t.Run(name, func(t *testing.T) {
			o := probe.VerifyOptions{Options: probe.Options{To: server.url, Method: call, Depth: 2}}
			v, _ := verify(t, o, is, is)
			for _, c := range v.Claims {
				if c.Verdict == probe.Confirmed && !strings.Contains(c.Open, "the field's name, which unwire did not test") {
					t.Errorf("not asked: %+v", c)
				}
			}
			before := v.Requests
			o.AskNames = true
			if name != "go" {
				v, _ = verify(t, o, is, is)
				if !strings.Contains(strings.Join(v.Notes, " "), "--known") || v.Requests != before {
					t.Errorf("without a known name: %q, %d requests, %d before", v.Notes, v.Requests, before)
				}
				o.Known = []string{"deep"}
			}
			v, _ = verify(t, o, is, is)
			settled := 0
			for _, c := range v.Claims {
				if c.Verdict == probe.Contradicted {
					t.Errorf("as it is: %+v", c)
				}
				if c.Verdict == probe.Confirmed && !strings.Contains(c.Open, "did not test") {
					settled++
				}
			}
			t.Logf("%d of %d confirmed fields have names that exist, %d requests instead of %d", settled, v.Confirmed, v.Requests, before)
			if settled != v.Confirmed {
				t.Errorf("%d of %d names were settled", settled, v.Confirmed)
			}
			o.Request = lie
			v, err := oracle.VerifyMethod(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]bool{}
			for _, c := range v.Claims {
				if c.Verdict == probe.Contradicted {
					found[c.Name] = true
				}
			}
			if !found["page_cursor"] || server.types && !found["mood"] || found["below"] || found["first_name"] || found["color"] {
				t.Errorf("contradicted: %v, %q", found, v.Notes)
			}
			// The types of maps' values: protobuf-es 1 names enums and messages, protojson all but these.
			for _, field := range map[string][]string{"go": {"counts", "fixed"}, "es 1": {"moods", "belows"}, "es 2": {"counts", "fixed", "moods", "belows"}}[name] {
				if !found[field] {
					t.Errorf("the type of the values of %s is not contradicted", field)
				}
			}
			for _, field := range []string{"keyed", "wrapped", "floats", "kept"} {
				if found[field] {
					t.Errorf("%s is as declared", field)
				}
			}
			if n := server.executed(); n != 0 {
				t.Errorf("handlers ran %d times", n)
			}
		})
	}
}

// A server that asks to be left alone for a while is, and that is reported.
func TestWaitingIsReported(t *testing.T) {
	var requests, waits atomic.Int64
	_, files := compiled(t, namesTruth)
	server := startConnect(t, files, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if requests.Add(1) == 3 {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	is := methods(files)[0].Input()
	began := time.Now()
	verify(t, probe.VerifyOptions{Options: probe.Options{To: server.url, Method: call, Waiting: func(wait time.Duration, answer string) {
		waits.Add(1)
		if wait <= 0 || wait > time.Second || !strings.Contains(answer, "429") && !strings.Contains(answer, "unavailable") {
			t.Errorf("waits %s after %q", wait, answer)
		}
	}}}, is, is)
	if waits.Load() != 1 || time.Since(began) < 900*time.Millisecond {
		t.Errorf("%d waits in %s", waits.Load(), time.Since(began))
	}
}
