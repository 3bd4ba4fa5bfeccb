package oracle_test

import (
	"context"
	"fmt"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/replay/probe"
	"unwire/replay/probe/oracle"
)

// dictionary has the names of a message among many others.
func dictionary(md protoreflect.MessageDescriptor, size int) (names []string) {
	for i := range size {
		names = append(names, fmt.Sprintf("candidateNo%d", i))
	}
	for i := range md.Fields().Len() {
		f := md.Fields().Get(i)
		at := i * size / md.Fields().Len()
		names[at] = string(f.Name())
		if i%2 == 0 {
			names[at] = f.JSONName()
		}
	}
	return names
}

func TestNames(t *testing.T) {
	m := newSchemaMaker(5)
	m.method("Call", 41, 200, false)
	files := m.files(t)
	method := methods(files)[0]
	names := dictionary(method.Input(), 5000)
	goServer := startConnect(t, files, nil)
	check := func(t *testing.T, res *probe.Result, err error, before int) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if res.Stopped != "" {
			t.Fatalf("stopped: %s; %+v", res.Stopped, res)
		}
		named := 0
		for _, f := range res.Fields {
			if f.Name == "" {
				continue
			}
			named++
			fd := method.Input().Fields().ByName(protoreflect.Name(f.Name))
			if fd == nil {
				fd = method.Input().Fields().ByJSONName(f.Name)
			}
			switch {
			case fd == nil:
				t.Errorf("no field has the name %s: %q", f.Name, f.Evidence)
			case f.Number != 0 && f.Number != int32(fd.Number()):
				t.Errorf("%s is said to be %d and is %d", f.Name, f.Number, fd.Number())
			case f.Class != "" && f.Class != classOf(fd):
				t.Errorf("%s is %s, said to be %s: %q", f.Name, fd.Kind(), f.Class, f.Evidence)
			case f.Label == "repeated" && !fd.IsList(), f.Label == "singular" && fd.Cardinality() == protoreflect.Repeated, f.Label == "map" && !fd.IsMap():
				t.Errorf("%s is %s, said to be %s", f.Name, fd.Cardinality(), f.Label)
			}
		}
		t.Logf("%s: %d of %d names in %d requests", res.Runtime, named, method.Input().Fields().Len(), res.Requests-before)
		if named != method.Input().Fields().Len() || res.Requests-before > named+30 {
			t.Errorf("%d names in %d requests", named, res.Requests-before)
		}
		if res.Executed != 0 {
			t.Errorf("%d executed", res.Executed)
		}
	}
	full := fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name())
	run := func(o probe.Options) (*probe.Result, error) {
		o.Method, o.Type = full, true
		return oracle.Run(context.Background(), o)
	}
	t.Run("go", func(t *testing.T) {
		without, err := run(probe.Options{To: goServer.url})
		if err != nil {
			t.Fatal(err)
		}
		res, err := run(probe.Options{To: goServer.url, Names: names})
		check(t, res, err, without.Requests)
		if n := goServer.executed.Load(); n != 0 {
			t.Errorf("handlers ran %d times", n)
		}
	})
	for _, version := range esVersions() {
		t.Run(string(version), func(t *testing.T) {
			server := startNode(t, version, m.set())
			without, err := run(probe.Options{To: server.url})
			if err != nil {
				t.Fatal(err)
			}
			res, err := run(probe.Options{To: server.url, Names: names})
			check(t, res, err, without.Requests)
			if n := server.executed(t); n != 0 {
				t.Errorf("handlers ran %d times", n)
			}
		})
	}
}
