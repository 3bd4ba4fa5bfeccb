package oracle_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/replay/internal/nodetest"
	"unwire/replay/probe"
	"unwire/replay/probe/oracle"
)

// An esVersion is a release of connect-es that is installed in ../testdata/node and its name.
type esVersion string

const (
	es1  esVersion = "1"   // 1.6, with protobuf-es 1.10
	es2  esVersion = "2"   // 2.2, with protobuf-es 2.17
	es21 esVersion = "2.1" // 2.1, with protobuf-es 2.7
)

func esVersions() []esVersion { return []esVersion{es1, es2, es21} }

// runtime is what probe recognises.
func (v esVersion) runtime() probe.Runtime {
	if v == es1 {
		return probe.ES1
	}
	return probe.ES2
}

// seed is that of the random schemas of a release. protobuf-es 2.7 parses the entries of maps as 1.10 does,
// and decides less about schemas with many of them.
func (v esVersion) seed() uint64 {
	if v == es2 {
		return 2
	}
	return 1
}

// A node is a connect-es server of a schema.
type node struct{ url *url.URL }

func startNode(t testing.TB, version esVersion, set *descriptorpb.FileDescriptorSet, options ...string) *node {
	t.Helper()
	raw, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse("http://127.0.0.1:" + nodetest.Serve(t, fmt.Sprintf("../testdata/node%s/server.mjs", version), append([][]byte{raw}, []byte(strings.Join(options, "")))[:1+len(options)]...))
	if err != nil {
		t.Fatal(err)
	}
	return &node{url: u}
}

// executed is how often the server's handlers ran.
func (n *node) executed(t testing.TB) int {
	t.Helper()
	resp, err := http.Get(n.url.String() + "/executed")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	count, err := strconv.Atoi(string(b))
	if err != nil {
		t.Fatal(err)
	}
	return count
}

func TestESFindsEveryFieldAndClass(t *testing.T) {
	for _, version := range esVersions() {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			m := newSchemaMaker(version.seed())
			for i, size := range []int{1, 3, 41} {
				m.method(fmt.Sprintf("Call%d", i), size, int32(max(size, 1000)), i%3 == 2)
			}
			server := startNode(t, version, m.set())
			for _, method := range methods(m.files(t)) {
				name := fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name())
				res, err := oracle.Run(context.Background(), probe.Options{To: server.url, Method: name, Type: true, Refine: false})
				if err != nil {
					t.Fatal(err)
				}
				v := compare(t, res, "", method.Input())
				t.Logf("%s %s: %d fields, %d found, %d classed in %d requests, %d bytes", res.Runtime, name, v.fields, v.found, v.classed, res.Requests, res.Bytes)
				if res.Stopped != "" || v.found != v.fields || v.classed < v.found-2 {
					t.Errorf("%+v", res)
				}
				if want := version.runtime(); res.Runtime != want {
					t.Errorf("runtime %s, want %s", res.Runtime, want)
				}
				if want := string(method.Input().FullName()); res.RequestType != want {
					t.Errorf("type %s, want %s", res.RequestType, want)
				}
				if res.Executed != 0 {
					t.Errorf("%d executed", res.Executed)
				}
			}
			if n := server.executed(t); n != 0 {
				t.Errorf("handlers ran %d times", n)
			}
		})
	}
}

// A request a field, one that nothing is left and one for the type are enough,
// with fields of the message's own type and groups, too: two fields are found in
// one request often enough.
func TestESTakesARequestAField(t *testing.T) {
	for _, version := range esVersions() {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			s := newRandomService(1, 40, 90) // proto2: with groups
			server := startNode(t, version, s.set())
			for _, method := range methods(s.files(t)) {
				md := method.Input()
				own, groups := 0, 0
				for i := range md.Fields().Len() {
					switch f := md.Fields().Get(i); {
					case f.Kind() == protoreflect.GroupKind:
						groups++
					case f.Message() == md:
						own++
					}
				}
				res, err := oracle.Run(context.Background(), probe.Options{To: server.url, Method: fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name()), Type: true, Numbers: numbersAsked()})
				if err != nil {
					t.Fatal(err)
				}
				v := compare(t, res, "", md)
				t.Logf("%d fields, %d of the message's own type, %d groups in %d requests, %d bytes", v.fields, own, groups, res.Requests, res.Bytes)
				if v.found != v.fields || v.classed != v.fields || res.Requests > v.fields+2 || own+groups == 0 {
					t.Errorf("%+v: %s", v, res.Stopped)
				}
			}
			if n := server.executed(t); n != 0 {
				t.Errorf("handlers ran %d times", n)
			}
		})
	}
}

// Small messages inside others are the hardest: there is little to tell a
// varint from a message by.
func TestNothingWrongIsClaimedOfSmallMessages(t *testing.T) {
	for _, version := range esVersions() {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			m := newSchemaMaker(100 + version.seed())
			for i := range 10 {
				m.method(fmt.Sprintf("Call%d", i), 1+i%6, int32(20+i%6), false)
			}
			server := startNode(t, version, m.set())
			var sum agreement
			for _, method := range methods(m.files(t)) {
				name := fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name())
				res, err := oracle.Run(context.Background(), probe.Options{To: server.url, Method: name, Type: true, Refine: true, Numbers: []probe.Range{{First: 1, Last: 40}}, Depth: 1})
				if err != nil {
					t.Fatal(err)
				}
				if res.Stopped != "" {
					t.Error(res.Stopped)
				}
				sum.add(compare(t, res, "", method.Input()))
				for i := range method.Input().Fields().Len() {
					if f := method.Input().Fields().Get(i); f.Kind() == protoreflect.MessageKind && !f.IsMap() {
						sum.add(compare(t, res, strconv.Itoa(int(f.Number())), f.Message()))
					}
				}
			}
			t.Logf("%+v", sum)
			if sum.found != sum.fields || sum.classed*100 < sum.fields*88 || server.executed(t) != 0 {
				t.Errorf("%+v", sum)
			}
		})
	}
}

func (v *agreement) add(w agreement) {
	v.fields, v.found, v.classed, v.wrong = v.fields+w.fields, v.found+w.found, v.classed+w.classed, v.wrong+w.wrong
}

// BenchmarkProbe is a run against connect-es 2 over a message of 41 fields.
func BenchmarkProbe(b *testing.B) {
	m := oneMethod(2)
	server := startNode(b, es2, m.set())
	var requests, size, fields int64
	for b.Loop() {
		res, err := oracle.Run(context.Background(), probe.Options{To: server.url, Method: call, Type: true})
		if err != nil {
			b.Fatal(err)
		}
		requests, size, fields = requests+int64(res.Requests), size+res.Bytes, fields+int64(len(res.Fields))
	}
	b.ReportMetric(float64(requests)/float64(fields), "requests/field")
	b.ReportMetric(float64(size)/float64(fields), "bytes/field")
}
