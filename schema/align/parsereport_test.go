package align

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"unwire/schema"
)

func reportLines(t testing.TB, r *Report) []byte {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, j := range r.Joins {
		if err := enc.Encode(j); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range r.Doubts {
		if err := enc.Encode(d); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func someReport() *Report {
	return &Report{
		Joins: []Join{
			{Message: "a.M", Number: 1, Name: "at_time", Derived: true, JSONName: "atTime", Type: "google.protobuf.Timestamp", Label: "singular", Alternatives: []string{}, Evidence: []string{"a.uwc#1/up/0"}},
			{Message: "a.M", Number: 2, Name: "by_id", JSONName: "byId", Type: "map<string, a.N>", Label: "map", Alternatives: []string{}, Evidence: []string{}},
			{Message: "a.N", Number: 3, Name: "kind", JSONName: "kind", Type: "enum", Label: "repeated", Alternatives: []string{"int32"}, Enum: map[string]int32{"ONE": 1}, Evidence: []string{}},
		},
		Doubts: []Doubt{{Message: "a.N", Numbers: []uint64{4, 5}, Names: []string{"x", "y"}, Settle: "a pair"}},
	}
}

// TestParseReport: what is read makes the definitions that what was written does.
func TestParseReport(t *testing.T) {
	want := someReport()
	got, err := ParseReport(reportLines(t, want))
	if err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(got.DescriptorSet(), want.DescriptorSet()) {
		t.Errorf("%v, want %v", got.DescriptorSet(), want.DescriptorSet())
	}
	if len(got.Doubts) != 1 || !slices.Equal(got.Doubts[0].Names, want.Doubts[0].Names) || got.Doubts[0].Settle != want.Doubts[0].Settle {
		t.Errorf("doubts: %+v", got.Doubts)
	}
	for _, text := range []string{"", "{}", "[]", `{"v":1,"message":"a.M"}`, `{"message":"a.M","json_name":"x","number":-1}`, string(reportLines(t, want)) + "{"} {
		if _, err := ParseReport([]byte(text)); !errors.Is(err, errNoReport) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzParseReport: whatever is read, definitions are made of it, or an error.
func FuzzParseReport(f *testing.F) {
	f.Add(reportLines(f, someReport()))
	f.Add([]byte(`{"message":"a.M","number":1,"name":"m","json_name":"m","type":"map<x>","label":"map"}`))
	f.Add([]byte(`{"message":"a.M","number":1,"name":"m","json_name":"m","type":"a..b","label":"singular"}`))
	f.Add([]byte(`{"message":"M","number":1,"name":"m","json_name":"m","type":"","label":"singular"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ParseReport(data)
		if err != nil {
			return
		}
		if s, err := schema.FromDescriptorSet(r.DescriptorSet()); err == nil && s == nil {
			t.Fatal("neither definitions nor an error")
		}
	})
}
