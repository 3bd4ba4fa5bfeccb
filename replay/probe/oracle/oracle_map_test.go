package oracle_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/replay/probe"
	"unwire/replay/probe/oracle"
)

const mapsSource = `
syntax = "proto3";
package probe.v1;
message Leaf { string a = 1; int32 b = 2; double c = 3; fixed32 d = 7; }
message Value { Leaf leaf = 1; string s = 2; map<int32, Leaf> more = 3; fixed64 f = 9; map<string, Nested> nested = 12; }
message Nested { map<fixed64, Leaf> deep = 1; repeated int32 list = 4; }
message Alike { string a = 1; int64 b = 2; }
enum Color { RED = 0; }
message Request {
  string name = 1;
  map<string, string> strings = 3;
  map<int32, Value> numbered = 5;
  map<string, Value> named = 6;
  map<fixed32, Color> colors = 7;
  map<sfixed64, bytes> blobs = 8;
  map<bool, float> floats = 9;
  map<sint64, double> doubles = 10;
  map<string, Alike> alike = 11;
  map<int32, Request> again = 40;
  int32 number = 41;
  bytes data = 42;
}
service Service { rpc Call(Request) returns (Leaf); }
`

// mapServers serve a schema with each runtime; executed counts started handlers.
func mapServers(t *testing.T, source string) (md protoreflect.MessageDescriptor, start map[string]func(t *testing.T) (*url.URL, func() int)) {
	t.Helper()
	set, files := compiled(t, source)
	es := func(version esVersion) func(t *testing.T) (*url.URL, func() int) {
		return func(t *testing.T) (*url.URL, func() int) {
			t.Helper()
			n := startNode(t, version, set)
			return n.url, func() int { return n.executed(t) }
		}
	}
	inGo := func(g *goServer) func(t *testing.T) (*url.URL, func() int) {
		return func(*testing.T) (*url.URL, func() int) { return g.url, func() int { return int(g.executed.Load()) } }
	}
	return methods(files)[0].Input(), map[string]func(t *testing.T) (*url.URL, func() int){
		"connect-es 1": es(es1), "connect-es 2": es(es2), "connect-go": inGo(startConnect(t, files, nil)), "grpc-go": inGo(startGRPC(t, files)),
	}
}

// checkAt compares what was found at a path with the definition: no field is
// invented, and on connect-es none is missing, with its class.
func checkAt(t *testing.T, res *probe.Result, path string, md protoreflect.MessageDescriptor) {
	t.Helper()
	v := compare(t, res, path, md)
	if strings.HasPrefix(string(res.Runtime), "connect-es") {
		vague := 0
		if res.Runtime == probe.ES1 && md.Name() == "Alike" {
			vague = 1 // a varint, or a message that has the same two fields
		}
		if v.found != v.fields || v.classed+vague < v.fields {
			t.Errorf("at %q: %+v: %+v", path, v, res.Fields)
		}
		return
	}
	want := 0
	for i := range md.Fields().Len() {
		if seenByGo(md.Fields().Get(i)) {
			want++
		}
	}
	if v.found != want {
		t.Errorf("at %q: found %d of %d: %+v", path, v.found, want, res.Fields)
	}
}

// A path may lead to a map, into its values, and through maps in them.
func TestPathIntoAMap(t *testing.T) {
	md, servers := mapServers(t, mapsSource)
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to, executed := start(t)
			for _, path := range []string{"3", "5", "5.2", "5.2.1", "5.2.3", "5.2.3.2", "5.2.12.2", "5.2.12.2.1.2", "6", "6.2", "6.2.1", "7", "8", "9", "10", "11", "11.2", "40", "40.2", "40.2.5.2"} {
				numbers, err := probe.ParsePath(path)
				if err != nil {
					t.Fatal(err)
				}
				for _, refine := range []bool{false, true} {
					res, err := oracle.Run(context.Background(), probe.Options{
						To: to, Method: call, Type: true, Refine: refine, Path: numbers, Numbers: []probe.Range{{First: 1, Last: 160}},
					})
					if err != nil {
						t.Fatal(err)
					}
					if string(res.Runtime) != name || res.Stopped != "" {
						t.Errorf("at %s: %s: %s %q", path, res.Runtime, res.Stopped, res.Notes)
					}
					checkAt(t, res, path, walk(md, path))
				}
			}
			if n := executed(); n != 0 {
				t.Errorf("handlers ran %d times", n)
			}
		})
	}
}

// A path below what is no message claims nothing, in a map as well.
func TestPathBelowAMapOfNumbers(t *testing.T) {
	_, servers := mapServers(t, mapsSource)
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to, executed := start(t)
			for _, path := range []string{"3.1", "3.2", "5.1", "5.3", "7.1", "7.2", "8.2", "9.2", "10.1", "10.2", "5.2.2", "5.2.9", "41", "42", "2", "5.2.3.1", "5.2.3.3"} {
				numbers, err := probe.ParsePath(path)
				if err != nil {
					t.Fatal(err)
				}
				res, err := oracle.Run(context.Background(), probe.Options{To: to, Method: call, Type: true, Path: numbers, Numbers: []probe.Range{{First: 1, Last: 160}}})
				if err != nil {
					t.Fatal(err)
				}
				if len(res.Fields) > 0 || string(res.Runtime) != name {
					t.Errorf("at %s: %s: %+v", path, res.Runtime, res.Fields)
				}
				if said := fmt.Sprint(res.Notes) + res.Stopped; !strings.Contains(said, "nothing below it was asked") {
					t.Errorf("at %s: %s", path, said)
				}
			}
			if n := executed(); n != 0 {
				t.Errorf("handlers ran %d times", n)
			}
		})
	}
}

// A request without any of the numbers that are asked about is still a request
// to a runtime that is known.
func TestNumbersThatDoNotExist(t *testing.T) {
	_, servers := mapServers(t, mapsSource)
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			to, executed := start(t)
			res, err := oracle.Run(context.Background(), probe.Options{To: to, Method: call, Type: true, Numbers: []probe.Range{{First: 2, Last: 2}}})
			if err != nil {
				t.Fatal(err)
			}
			if len(res.Fields) > 0 || string(res.Runtime) != name || res.Stopped != "" || executed() != 0 {
				t.Errorf("%+v", res)
			}
		})
	}
}

// --depth goes through maps.
func TestDepthThroughMaps(t *testing.T) {
	md, servers := mapServers(t, mapsSource)
	for name, start := range servers {
		for depth := 1; depth <= 3; depth++ {
			t.Run(fmt.Sprint(name, " ", depth), func(t *testing.T) {
				t.Parallel()
				to, executed := start(t)
				res, err := oracle.Run(context.Background(), probe.Options{To: to, Method: call, Type: true, Depth: depth, Numbers: []probe.Range{{First: 1, Last: 50}}, Budget: 20_000})
				if err != nil {
					t.Fatal(err)
				}
				if res.Stopped != "" || string(res.Runtime) != name {
					t.Errorf("%s: %s", res.Runtime, res.Stopped)
				}
				want := messagesBelow(md, depth)
				for path, of := range want {
					checkAt(t, res, path, of)
				}
				for _, f := range res.Fields {
					if want[f.Path] == nil {
						t.Errorf("there is no message at %s: %+v", f.Path, f)
					}
				}
				if n := executed(); n != 0 {
					t.Errorf("handlers ran %d times", n)
				}
			})
		}
	}
}

// messagesBelow lists the messages of a message by their paths; the entry of a
// map is one.
func messagesBelow(md protoreflect.MessageDescriptor, depth int) map[string]protoreflect.MessageDescriptor {
	out := map[string]protoreflect.MessageDescriptor{"": md}
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		if fd.Message() == nil || depth == 0 {
			continue
		}
		for path, of := range messagesBelow(fd.Message(), depth-1) {
			out[strings.TrimSuffix(fmt.Sprintf("%d.%s", fd.Number(), path), ".")] = of
		}
	}
	return out
}

// Where a number that cannot exist is answered as if it did, nothing is claimed
// of that message.
func TestControlAtEachPath(t *testing.T) {
	const source = `
syntax = "proto3";
package probe.v1;
message Inner { string a = 1; int32 b = 2; }
message Request { string name = 1; int32 number = 3; Inner inner = 5; fixed32 other = 6; }
service Service { rpc Call(Request) returns (Inner); }
`
	set, _ := compiled(t, source)
	const off = `{"code":"invalid_argument","message":"parse binary: illegal tag: field no %d wire type %d"}`
	for name, answer := range map[string]func(inner []byte) string{
		"without a name": func([]byte) string { return fmt.Sprintf(off, 0, 7) },
		"the first canary": func(inner []byte) string { // behind a tag, a varint, and a tag that is skipped
			tag, _ := protowire.ConsumeVarint(inner[7:])
			return fmt.Sprintf(off, tag>>3, tag&7)
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := startNode(t, es1, set)
			proxy := around(t, server.url, func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, err := io.ReadAll(r.Body)
					if err != nil {
						t.Error(err)
					}
					n, typ, size := protowire.ConsumeTag(body)
					if n == 5 && typ == protowire.BytesType {
						if inner, _ := protowire.ConsumeBytes(body[size:]); len(inner) > 10 {
							w.Header().Set("Content-Type", "application/json")
							w.WriteHeader(http.StatusBadRequest)
							io.WriteString(w, answer(inner)) //nolint:errcheck // the client sees it
							return
						}
					}
					r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
					h.ServeHTTP(w, r)
				})
			})
			for _, o := range []probe.Options{{Path: []int32{5}}, {Depth: 1}} {
				o.To, o.Method, o.Type = proxy, call, true
				res, err := oracle.Run(context.Background(), o)
				if err != nil {
					t.Fatal(err)
				}
				if said := fmt.Sprint(res.Notes); res.Runtime != probe.ES1 || res.Stopped != "" || !strings.Contains(said, "cannot exist in 5 like an existing one") || res.Requests > 30 {
					t.Errorf("%s %q in %d requests: %s", res.Runtime, res.Stopped, res.Requests, said)
				}
				if fields := map[int]int{0: 0, 1: 4}[o.Depth]; len(res.Fields) != fields {
					t.Errorf("%+v", res.Fields)
				}
			}
		})
	}
}
