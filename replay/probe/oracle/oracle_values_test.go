package oracle_test

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	_ "google.golang.org/protobuf/types/known/typepb"

	"unwire/replay/probe"
	"unwire/replay/probe/oracle"
)

// that an Any may hold it

const enums = `syntax = "proto3";
package probe.v1;
import "google/protobuf/any.proto";
enum Mode { MODE_UNSPECIFIED = 0; MODE_FAST = 1; MODE_SLOW = 2; MODE_AGENT = 3; ODD_ONE = 4; }
enum Level { LEVEL_UNKNOWN = 0; LEVEL_HIGH = 1; }
message Request {
  enum Kind { KIND_NONE = 0; KIND_SYSTEM = 7; }
  string title = 1;
  Mode mode = 2;
  repeated Mode modes = 3;
  map<string, Level> levels = 4;
  map<int32, Kind> kinds = 5;
  google.protobuf.Any extra = 6;
  repeated google.protobuf.Any more = 7;
  map<string, int32> counts = 8;
  map<bool, Level> flags = 9;
  Inner inner = 10;
  Level alone = 11;
}
message Inner { map<uint64, Mode> agents = 1; repeated Level list = 2; string note = 3; }
service Service { rpc Call(Request) returns (Inner); }
`

// compiled is a source as a descriptor set and as files.
func compiled(t testing.TB, source string) (*descriptorpb.FileDescriptorSet, *protoregistry.Files) {
	t.Helper()
	c := protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{Accessor: protocompile.SourceAccessorFromMap(map[string]string{"t.proto": source})})}
	files, err := c.Compile(context.Background(), "t.proto")
	if err != nil {
		t.Fatal(err)
	}
	set := &descriptorpb.FileDescriptorSet{}
	for i := range files[0].Imports().Len() {
		set.File = append(set.File, protodesc.ToFileDescriptorProto(files[0].Imports().Get(i).FileDescriptor))
	}
	set.File = append(set.File, protodesc.ToFileDescriptorProto(files[0]))
	all, err := protodesc.NewFiles(set)
	if err != nil {
		t.Fatal(err)
	}
	return set, all
}

// valuesOf are the values that were found of each field, by name.
func valuesOf(t *testing.T, res *probe.Result, md protoreflect.MessageDescriptor) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, f := range slices.Concat(res.Fields, res.Nested) {
		of := md
		if f.In != "" {
			of = md.Fields().ByTextName(f.In).Message()
		}
		fd := of.Fields().ByTextName(f.Name)
		if fd == nil {
			continue
		}
		e := fd.Enum()
		if fd.IsMap() {
			e = fd.MapValue().Enum()
		}
		for _, v := range f.Values {
			if e == nil || e.Values().ByName(protoreflect.Name(v)) == nil {
				t.Errorf("%s has no value %s: %q", f.Name, v, f.Evidence)
			}
		}
		if len(f.Values) > 0 {
			values := slices.Sorted(slices.Values(f.Values))
			out[f.Name] = strings.Join(values, " ")
		}
	}
	return out
}

func TestEnumValues(t *testing.T) {
	set, files := compiled(t, enums)
	md := methods(files)[0].Input()
	names := requestNames(md)
	values := []string{"ODD_ONE", "NOT_THIS", "LEVEL_LOW"}
	for i := range 300 {
		values = append(values, "NONE_OF_THESE_"+strconv.Itoa(i))
	}
	run := func(t *testing.T, o probe.Options) *probe.Result {
		t.Helper()
		o.Method, o.Names, o.Values, o.Type, o.Depth, o.Known = call, append(names, "agent"), values, true, 1, []string{"title"}
		o.Types = []string{"no.such.Type", "google.protobuf.Type", "google.protobuf.Empty"}
		res, err := oracle.Run(context.Background(), o)
		if err != nil || res.Stopped != "" || res.Executed != 0 {
			t.Fatalf("%v: %+v", err, res)
		}
		checkNames(t, res, md)
		checkNested(t, res, md)
		t.Logf("%d requests", res.Requests)
		return res
	}
	const levels, kinds = "LEVEL_HIGH LEVEL_UNKNOWN", "KIND_NONE KIND_SYSTEM"
	const modes = "MODE_AGENT MODE_FAST MODE_SLOW MODE_UNSPECIFIED ODD_ONE"
	want := map[string]map[string]string{
		"go": {"levels": "LEVEL_HIGH LEVEL_UNKNOWN", "kinds": "KIND_NONE KIND_SYSTEM", "agents": "ODD_ONE"}, // the name of the enum is not told
		"1":  {},
		"2": {
			"mode": modes, "modes": modes, "agents": modes, "kinds": "KIND_NONE KIND_SYSTEM",
			"levels": "LEVEL_HIGH LEVEL_UNKNOWN", "flags": "LEVEL_HIGH LEVEL_UNKNOWN", "alone": "LEVEL_HIGH LEVEL_UNKNOWN", "list": "LEVEL_HIGH LEVEL_UNKNOWN",
		},
	}
	// A parser that refuses unknown names reveals the values of all enums.
	strictly := map[string]string{
		"mode": modes, "modes": modes, "agents": modes, "kinds": kinds, "levels": levels, "flags": levels, "alone": levels, "list": levels,
	}
	want["strict go"], want["strict 2"] = maps.Clone(strictly), maps.Clone(strictly)
	delete(want["strict go"], "flags") // a map whose keys are of type bool
	delete(strictly, "flags")
	want["strict 1"] = strictly
	check := func(t *testing.T, res *probe.Result, kind string) {
		t.Helper()
		got := valuesOf(t, res, md)
		for name, values := range want[kind] {
			if got[name] != values {
				t.Errorf("%s: %q, want %q", name, got[name], values)
			}
		}
		for _, f := range res.Fields {
			switch {
			case f.Name == "extra" && (f.Type != "google.protobuf.Any" || kind == "go" && !slices.Equal(f.Holds, []string{"google.protobuf.Type", "google.protobuf.Empty"})):
				t.Errorf("%+v", f)
			case !strings.HasSuffix(kind, "go") && len(f.Holds) > 0:
				t.Errorf("there is no registry: %+v", f)
			}
		}
	}
	t.Run("go", func(t *testing.T) {
		server := startConnect(t, files, nil)
		check(t, run(t, probe.Options{To: server.url}), "go")
		if server.executed.Load() != 0 {
			t.Error("handlers ran")
		}
	})
	t.Run("strict go", func(t *testing.T) {
		server := startConnect(t, files, nil, connect.WithCodec(strictJSON{}))
		check(t, run(t, probe.Options{To: server.url}), "strict go")
		if server.executed.Load() != 0 {
			t.Error("handlers ran")
		}
	})
	for _, version := range esVersions() {
		t.Run("strict "+string(version), func(t *testing.T) {
			t.Parallel()
			server := startNode(t, version, set, `{"strict":true}`)
			check(t, run(t, probe.Options{To: server.url}), "strict "+string(version))
			if server.executed(t) != 0 {
				t.Error("handlers ran")
			}
		})
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			server := startNode(t, version, set)
			check(t, run(t, probe.Options{To: server.url}), string(version))
			if server.executed(t) != 0 {
				t.Error("handlers ran")
			}
		})
	}
}
