package oracle_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"unwire/replay/probe"
	"unwire/replay/probe/oracle"
	"unwire/schema"
)

// Requests whose strings no Go server checks, or that have none. "needs" has a required field.
const unchecked = `
syntax = "proto2";
package probe.v1;
message Below { optional string note = 1; repeated int64 sizes = 2; optional Below again = 3; }
message Request {
  KIND bool needs = 1;
  optional string title = 2;
  optional Below below = 3;
  repeated int32 numbers = 4 [packed = true];
  repeated fixed64 wide = 5;
  optional bytes raw = 6;
  repeated float thin = 7;
}
message Reply {}
service Service { rpc Call(Request) returns (Reply); }
`

// Where no string can end requests, the deadline does, or a required field that is missing: the
// server shows its messages and lists, no handler runs, and definitions are verified.
func TestEndsWithoutStrings(t *testing.T) {
	const found = ": 3 message, 4 repeated, 5 repeated, 7 repeated; 3: 2 repeated, 3 message"
	for _, c := range []struct {
		name, label string
		// text makes the field "needs" a string, which tests set.
		text bool
		opts []connect.HandlerOption
		grpc bool
		// unary means that the service is registered with grpc-go, as generated code does; otherwise
		// grpc-go treats the method as a stream.
		unary bool
		// defined means that the definitions are given, allow that handlers may run, and ran how many do.
		defined, allow bool
		found, note    string
		ran            int
	}{
		{name: "deadline", label: "optional", found: found, note: "unwire instead sent an expired deadline"},
		{name: "required", label: "required", found: found, note: "omitted the required field probe.v1.Request.needs"},
		{name: "auth", label: "optional", opts: []connect.HandlerOption{authenticated()}, found: found, note: "no string field that the server checks; unwire instead"},
		{name: "required text", label: "required", text: true, found: found, note: "omitted the required field probe.v1.Request.needs"},
		{name: "required text, auth", label: "required", text: true, opts: []connect.HandlerOption{authenticated()}, found: found, note: "omitted the required field probe.v1.Request.needs"},
		{name: "grpc, required text, with definitions", label: "required", text: true, grpc: true, defined: true, note: "so unwire could not find messages"},
		{name: "grpc", label: "required", grpc: true, note: "so unwire could not find messages"},
		{name: "grpc with definitions", label: "required", grpc: true, defined: true, found: found, note: "omitted the required field probe.v1.Request.needs"},
		{name: "grpc allowed", label: "required", grpc: true, allow: true, found: found, note: "omitted the required field probe.v1.Request.needs"},
		{name: "unary grpc", label: "optional", grpc: true, unary: true, note: "so unwire could not find messages"},
		{name: "unary grpc with definitions", label: "optional", grpc: true, unary: true, defined: true, found: found, note: "two messages, so that grpc-go"},
		{name: "unary grpc allowed", label: "optional", grpc: true, unary: true, allow: true, found: found, note: "two messages, so that"},
		{name: "grpc with definitions, nothing required", label: "optional", grpc: true, defined: true, note: "so unwire could not find messages"},
		{name: "grpc allowed, nothing required", label: "optional", grpc: true, allow: true, note: "so unwire could not find messages", ran: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			source := strings.ReplaceAll(unchecked, "KIND", c.label)
			if c.text {
				source = strings.Replace(source, "bool needs", "string needs", 1)
			}
			set, files := compiled(t, source)
			md := methods(files)[0].Input()
			start := func() *goServer {
				if c.unary {
					return startDeclaredGRPC(t, files)
				}
				if c.grpc {
					return startGRPC(t, files)
				}
				return startConnect(t, files, nil, c.opts...)
			}
			server := start()
			o := probe.Options{To: server.url, Method: call, Type: true, Depth: 1, Numbers: []probe.Range{{First: 1, Last: 40}}, AllowExecute: c.allow}
			if c.defined {
				definitions, err := schema.FromDescriptorSet(set)
				if err != nil {
					t.Fatal(err)
				}
				o.Schema = definitions
			}
			res, err := oracle.Run(context.Background(), o)
			if err != nil || res.Stopped != "" {
				t.Fatalf("%v: %+v", err, res)
			}
			compareAll(t, res, md)
			if got := shapes(res); got != c.found {
				t.Errorf("%q, want %q", got, c.found)
			}
			if !strings.Contains(strings.Join(res.Notes, "; "), c.note) || strings.Contains(c.note, "required") && res.RequestType != "probe.v1.Request" {
				t.Errorf("%q of %q", res.Notes, res.RequestType)
			}
			if n := int(server.executed.Load()); n != c.ran || res.Executed != c.ran {
				t.Errorf("handlers ran %d times; %d are reported", n, res.Executed)
			}
			if c.found == "" {
				return
			}

			// The definitions are verified in the same way, and wrong ones are contradicted.
			_, lies := compiled(t, strings.NewReplacer("optional Below below = 3", "optional bytes below = 3", "repeated float thin", "repeated double thin").Replace(source))
			server = start()
			o.To = server.url
			v, sum := verify(t, probe.VerifyOptions{Options: o}, md, md)
			if v.Contradicted > 0 || v.Confirmed < 4 {
				t.Errorf("the truth: %+v: %+v", sum, v)
			}
			if v, _ = verify(t, probe.VerifyOptions{Options: o}, methods(lies)[0].Input(), md); v.Contradicted != 2 {
				t.Errorf("%d of 2 mistakes are contradicted: %+v", v.Contradicted, v)
			}
			if server.executed.Load() != 0 {
				t.Error("handlers ran")
			}
		})
	}
}

// A required string that the definitions take for a number is not set by a test.
func TestWrongTypeOfARequiredField(t *testing.T) {
	_, files := compiled(t, strings.NewReplacer("KIND bool", "required string").Replace(unchecked))
	wrong, lies := compiled(t, strings.NewReplacer("KIND bool", "required int32").Replace(unchecked))
	definitions, err := schema.FromDescriptorSet(wrong)
	if err != nil {
		t.Fatal(err)
	}
	server := startGRPC(t, files)
	o := probe.Options{To: server.url, Method: call, Numbers: []probe.Range{{First: 1, Last: 40}}, Schema: definitions}
	res, err := oracle.Run(context.Background(), o)
	if err != nil || shapes(res) != ": 3 message, 4 repeated, 5 repeated, 7 repeated" {
		t.Errorf("%v: %+v", err, res)
	}
	verify(t, probe.VerifyOptions{Options: o}, methods(lies)[0].Input(), methods(files)[0].Input())
	if server.executed.Load() != 0 {
		t.Error("handlers ran, though the definitions are wrong in the type of the required field alone")
	}
}

// A proxy that drops the deadline is noticed by the first request: it is reported that a handler may
// have run, and none follows.
func TestProxyWithoutDeadlines(t *testing.T) {
	_, files := compiled(t, strings.ReplaceAll(unchecked, "KIND", "optional"))
	server := startConnect(t, files, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("Connect-Timeout-Ms")
			h.ServeHTTP(w, r)
		})
	})
	res, err := oracle.Run(context.Background(), probe.Options{To: server.url, Method: call, Numbers: []probe.Range{{First: 1, Last: 40}}})
	if err != nil || len(res.Fields) > 0 || res.Executed != 1 || server.executed.Load() != 1 {
		t.Errorf("%v: %+v; %d ran", err, res, server.executed.Load())
	}
}

// shapes lists the fields of a result by path.
func shapes(res *probe.Result) string {
	var list []string
	path := "-"
	for _, f := range res.Fields {
		what := "message"
		if f.Label != "" {
			what = f.Label
		}
		if f.Path != path {
			path = f.Path
			list = append(list, "; "+f.Path+": ")
		} else {
			list = append(list, ", ")
		}
		list = append(list, probe.PathText([]int32{f.Number})+" "+what)
	}
	return strings.TrimPrefix(strings.Join(slices.Clip(list), ""), "; ")
}
