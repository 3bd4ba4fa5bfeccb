package eval

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// A half is a group of the split that issue-sized changes are judged by: types of public modules with values of
// a composer. What was tuned on the one half is measured on the other, which was looked at once.
type half struct {
	name    string
	prefix  string
	modules []string
	tuned   bool
}

// halves are both halves of the split.
var halves = []half{
	{"split openfga", "openfga.", []string{"github.com/openfga/api/proto@v0.0.0-20260319214821-f153694bfc20"}, true},
	{"split ydb", "Ydb.", []string{"github.com/ydb-platform/ydb-go-genproto@v0.0.0-20260810123728-f0c151ab31b9"}, true},
	{"split dialogflow", "google.cloud.dialogflow.", []string{"cloud.google.com/go/dialogflow@v1.89.1", "cloud.google.com/go/longrunning@v0.6.7"}, true},
	{"split buildkit", "", []string{"github.com/moby/buildkit@v0.34.2"}, true},

	{"once authzed", "authzed.", []string{"github.com/authzed/authzed-go@v1.11.0"}, false},
	{"once pulumi", "pulumirpc.", []string{"github.com/pulumi/pulumi/sdk/v3@v3.274.1"}, false},
	{"once documentai", "google.cloud.documentai.", []string{"cloud.google.com/go/documentai@v1.52.0", "cloud.google.com/go/longrunning@v0.6.7"}, false},
	{"once monitoring", "google.monitoring.", []string{"cloud.google.com/go/monitoring@v1.32.1"}, false},
	{"once trillian", "trillian", []string{"github.com/google/trillian@v1.8.0"}, false},
	{"once dapr", "dapr.", []string{"github.com/dapr/dapr@v1.14.0"}, false},
}

// Sizes of the split.
const (
	// halfTypes is how many types of a group are taken, at random: those with most types below them first in
	// half of the cases, since they show whether one type is found again in several places.
	halfTypes = 14
	// halfSamples is how many messages each has.
	halfSamples = 100
)

// withoutOptions removes the imports of files that only declare options, which the modules do not ship.
func withoutOptions(t testing.TB, raw []byte) []byte {
	f := &descriptorpb.FileDescriptorProto{}
	if err := proto.Unmarshal(raw, f); err != nil {
		t.Fatal(err)
	}
	f.Dependency = slices.DeleteFunc(f.Dependency, func(name string) bool {
		return strings.HasSuffix(name, "validate.proto") || strings.Contains(name, "openapiv2") || strings.Contains(name, "vtproto")
	})
	f.PublicDependency, f.WeakDependency, f.OptionDependency = nil, nil, nil
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// corpora returns the corpora of the group.
func (f *half) corpora(t testing.TB, seed uint64) []corpus {
	var raw [][]byte
	for _, m := range append([]string{moduleGoogleAPI, moduleGoogleRPC}, f.modules...) {
		for _, b := range descriptorsIn(t, moduleDir(t, m), 2000) {
			raw = append(raw, withoutOptions(t, b))
		}
	}
	var types []protoreflect.MessageDescriptor
	for _, md := range typesOf(t, raw) {
		name := string(md.FullName())
		if strings.HasPrefix(name, f.prefix) && (strings.HasPrefix(f.prefix, "google.") || !strings.HasPrefix(name, "google.")) {
			types = append(types, md)
		}
	}
	if len(types) == 0 {
		t.Fatalf("%s: no types", f.name)
	}
	r := rand.New(rand.NewPCG(seed, 11))
	r.Shuffle(len(types), func(i, j int) { types[i], types[j] = types[j], types[i] })
	var out []corpus
	for i, md := range types[:min(halfTypes, len(types))] {
		w := newComposer(seed*1000 + uint64(i))
		c := corpus{group: f.name, held: !f.tuned, name: string(md.FullName()), truth: md}
		for range halfSamples {
			if b := w.sample(md); len(b) > 0 {
				c.samples = append(c.samples, b)
			}
		}
		if len(c.samples) > 0 {
			out = append(out, c)
		}
	}
	return out
}
