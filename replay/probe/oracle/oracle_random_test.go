package oracle_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/replay/probe"
	"unwire/replay/probe/oracle"
)

// walk finds the message at a path of a result.
func walk(md protoreflect.MessageDescriptor, path string) protoreflect.MessageDescriptor {
	numbers, err := probe.ParsePath(path)
	if err != nil {
		return nil
	}
	for _, n := range numbers {
		f := md.Fields().ByNumber(protoreflect.FieldNumber(n))
		if f == nil || f.Message() == nil {
			return nil
		}
		md = f.Message()
	}
	return md
}

// compareAll holds all that was learnt against the definitions: its paths, and
// the names that have no number.
func compareAll(t *testing.T, res *probe.Result, md protoreflect.MessageDescriptor) (v agreement) {
	t.Helper()
	paths := map[string]bool{"": true}
	for _, f := range res.Fields {
		paths[f.Path] = true
	}
	for path := range paths {
		of := walk(md, path)
		if of == nil {
			t.Errorf("there is no message at %q", path)
			v.wrong++
			continue
		}
		w := compare(t, res, path, of)
		if path != "" { // what is below is asked for in part
			w.fields = w.found
		}
		v.add(w)
	}
	return v
}

// A randomServer serves random services, and counts how often a handler ran.
type randomServer struct {
	name string
	// runtime is what probe recognises.
	runtime probe.Runtime
	start   func(t *testing.T, s *randomService) (target *url.URL, executed func() int)
}

func randomServers() []randomServer {
	es := func(version esVersion) func(t *testing.T, s *randomService) (*url.URL, func() int) {
		return func(t *testing.T, s *randomService) (*url.URL, func() int) {
			n := startNode(t, version, s.set())
			return n.url, func() int { return n.executed(t) }
		}
	}
	return []randomServer{
		{"connect-es 1", probe.ES1, es(es1)},
		{"connect-es 2", probe.ES2, es(es2)},
		{"connect-es 2.1", probe.ES2, es(es21)},
		{"connect-go", probe.ConnectGo, func(t *testing.T, s *randomService) (*url.URL, func() int) {
			g := startConnect(t, s.files(t), nil)
			return g.url, func() int { return int(g.executed.Load()) }
		}},
		{"grpc-go", probe.GRPCGo, func(t *testing.T, s *randomService) (*url.URL, func() int) {
			g := startGRPC(t, s.files(t))
			return g.url, func() int { return int(g.executed.Load()) }
		}},
	}
}

// seedsOf is how many random services are asked: few, 50 with UNWIRE_LONG=1 (make long), or
// UNWIRE_SEEDS.
func seedsOf(few uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv("UNWIRE_SEEDS"), 10, 16); err == nil {
		return n
	}
	if os.Getenv("UNWIRE_LONG") != "" {
		return 50
	}
	return few
}

// Whatever a service is like, nothing wrong is said of it.
func TestNothingWrongIsClaimedOfRandomServices(t *testing.T) {
	seeds, depth := seedsOf(3), func(seed uint64) int { return int(seed) % 2 }
	if os.Getenv("UNWIRE_LONG") != "" {
		depth = func(uint64) int { return 2 }
	}
	for _, server := range randomServers() {
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			var sum agreement
			requests, visible, named, all, joined, nested, size := 0, 0, 0, 0, 0, 0, int64(0)
			for seed := range seeds {
				s := newRandomService(seed, 1+int(seed)%5, 18)
				target, executed := server.start(t, s)
				for _, method := range methods(s.files(t)) {
					md := method.Input()
					names := requestNames(md)
					if len(knownName(md)) == 0 && strings.HasPrefix(server.name, "connect-es") {
						names = nil // without one, a batch without a hit could run the handler
					}
					res, err := oracle.Run(context.Background(), probe.Options{
						To: target, Method: fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name()), Type: true, Refine: true, Depth: depth(seed), Budget: 20_000,
						Numbers: numbersAsked(), Names: names, Known: knownName(md),
					})
					if err != nil {
						t.Fatal(err)
					}
					if res.Runtime != server.runtime || res.Executed != 0 || res.RequestType != "" && res.RequestType != string(md.FullName()) || res.Stopped != "" {
						t.Errorf("seed %d %s: %s, %d executed, of type %q: %s", seed, method.Name(), res.Runtime, res.Executed, res.RequestType, res.Stopped)
					}
					v := compareAll(t, res, md)
					t.Logf("seed %d %s: %+v in %d requests, %d bytes", seed, method.Name(), v, res.Requests, res.Bytes)
					sum.add(v)
					requests, size = requests+res.Requests, size+res.Bytes
					n, wrong := checkNames(t, res, md)
					named, all, sum.wrong = named+n, all+md.Fields().Len(), sum.wrong+wrong+checkNested(t, res, md)
					nested += len(res.Nested)
					for _, f := range res.Fields {
						if f.Name != "" && f.Number != 0 {
							joined++
						}
					}
					for i := range md.Fields().Len() {
						if seenByGo(md.Fields().Get(i)) {
							visible++
						}
					}
				}
				if n := executed(); n != 0 {
					t.Errorf("seed %d: handlers ran %d times", seed, n)
				}
			}
			t.Logf("%+v; %d of %d names, %d with numbers, %d of messages below; in %d requests, %d bytes; Go shows %d", sum, named, all, joined, nested, requests, size, visible)
			if sum.wrong > 0 || strings.HasPrefix(server.name, "connect-es") && sum.found < sum.fields || server.name == "connect-go" && named < all*9/10 {
				t.Error("too little was found")
			}
		})
	}
}

// checkNames holds the names of a request's fields against its definition.
func checkNames(t *testing.T, res *probe.Result, md protoreflect.MessageDescriptor) (named, wrong int) {
	t.Helper()
	for _, f := range res.Fields {
		if f.Path != "" || f.Name == "" {
			continue
		}
		fd := md.Fields().ByTextName(f.Name)
		if fd == nil {
			fd = md.Fields().ByJSONName(f.Name)
		}
		if fd == nil {
			wrong++
			t.Errorf("no field has the name %s: %q", f.Name, f.Evidence)
			continue
		}
		named++
		for _, c := range []struct {
			what string
			is   bool
		}{
			{"number", f.Number == 0 || f.Number == int32(fd.Number())},
			{"class", f.Class == "" || f.Class == classOf(fd)},
			{"label", f.Label == "" || f.Label == labelOf(fd)},
			{"type", f.Type == "" || typeIs(fd, f.Type)},
			{"map's value", f.MapValue == "" && f.MapFamily == "" || fd.IsMap() && (f.MapValue == "" || typeIs(fd.MapValue(), f.MapValue))},
			{"map's family", f.MapFamily == "" || fd.IsMap() && familyOf(fd.MapValue()) == f.MapFamily},
		} {
			if !c.is {
				wrong++
				t.Errorf("the %s of %s is not that of %+v", c.what, fd, f)
			}
		}
	}
	return named, wrong
}

// knownName is a name that a capture might show: of a field that is no float.
func knownName(md protoreflect.MessageDescriptor) []string {
	for i := range md.Fields().Len() {
		switch f := md.Fields().Get(i); f.Kind() {
		case protoreflect.StringKind, protoreflect.BoolKind, protoreflect.Int64Kind:
			if !f.IsList() {
				return []string{f.JSONName()}
			}
		}
	}
	return nil
}

// checkNested holds names of messages below a request against their definitions.
func checkNested(t *testing.T, res *probe.Result, md protoreflect.MessageDescriptor) (wrong int) {
	t.Helper()
	for _, f := range res.Nested {
		of := md
		for name := range strings.SplitSeq(f.In, ".") {
			fd := of.Fields().ByTextName(name)
			if fd == nil {
				fd = of.Fields().ByJSONName(name)
			}
			if fd == nil || fd.Message() == nil || fd.IsMap() {
				t.Errorf("nothing is in %q: %+v", f.In, f)
				return wrong + 1
			}
			of = fd.Message()
		}
		if f.Message != "" && f.Message != string(of.FullName()) {
			wrong++
			t.Errorf("%s is of %s, not of %s", f.In, of.FullName(), f.Message)
		}
		_, w := checkNames(t, &probe.Result{Fields: []probe.Field{{Name: f.Name, Class: f.Class, Kind: f.Kind, Label: f.Label, Type: f.Type, MapValue: f.MapValue, MapFamily: f.MapFamily, Evidence: f.Evidence}}}, of)
		wrong += w
	}
	return wrong
}

// familyOf is the type that stands for those that JSON does not distinguish from a field's.
func familyOf(fd protoreflect.FieldDescriptor) string {
	if fd.Message() != nil { // a wrapper is read as what it wraps
		if fd.Message().Fields().Len() != 1 {
			return ""
		}
		fd = fd.Message().Fields().Get(0)
	}
	switch k := fd.Kind(); k {
	case protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return "int32"
	case protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return "int64"
	case protoreflect.Fixed32Kind:
		return "uint32"
	case protoreflect.Fixed64Kind:
		return "uint64"
	default:
		return k.String()
	}
}

func labelOf(fd protoreflect.FieldDescriptor) string {
	switch {
	case fd.IsMap():
		return "map"
	case fd.IsList():
		return "repeated"
	}
	return "singular"
}

func typeIs(fd protoreflect.FieldDescriptor, name string) bool {
	switch {
	case fd.Message() != nil:
		return string(fd.Message().FullName()) == name
	case fd.Enum() != nil:
		return string(fd.Enum().FullName()) == name || name == "enum"
	}
	return fd.Kind().String() == name
}
