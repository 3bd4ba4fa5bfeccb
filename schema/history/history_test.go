package history

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"unwire/schema/infer"
	"unwire/schema/infer/sources"
)

// shard is evidence of samples.
func shard(t *testing.T, client, day string, samples ...[]byte) Shard {
	t.Helper()
	ev := infer.NewEvidence()
	for _, s := range samples {
		if err := ev.Add("Request", s); err != nil {
			t.Fatal(err)
		}
	}
	p := sources.Part{Method: "a.B/C", Direction: "up", Client: client, Day: day}
	ev.SetPart(p, []byte(client+day))
	return Shard{p, ev}
}

func text(b []byte, n protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
}

func number(b []byte, n protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
}

func message(b []byte, n protowire.Number, m []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), m)
}

// versions are shards of three versions: 1.10 adds field 3 on its second day and a nested field, and 2.0 changes the
// type of field 1, repeats field 2, and is not seen with field 3.
func versions(t *testing.T) []Shard {
	t.Helper()
	words := []string{"the quick brown fox", "jumps over", "a lazy dog that sleeps"}
	var old, first, second, last [][]byte
	for i := range 30 {
		base := number(text(nil, 1, words[i%3]), 2, uint64(1000+i))
		inner := number(text(nil, 1, words[(i+1)%3]), 2, uint64(i))
		old = append(old, message(slices.Clone(base), 5, inner))
		inner = text(slices.Clone(inner), 7, words[(i+2)%3])
		first = append(first, message(slices.Clone(base), 5, inner))
		second = append(second, message(text(slices.Clone(base), 3, words[(i+1)%3]), 5, inner))
		last = append(last, message(number(number(number(nil, 1, uint64(i)*7), 2, uint64(1000+i)), 2, 5), 5, inner))
	}
	return []Shard{
		shard(t, "app/1.9", "2026-01-01", old...),
		shard(t, "app/1.10", "2026-01-02", first...), shard(t, "app/1.10", "2026-01-03", second...),
		shard(t, "app/2.0", "2026-01-04", last...),
		shard(t, "other/1.0", "2026-01-01", text(nil, 9, "another program")),
	}
}

func TestFields(t *testing.T) {
	t.Parallel()
	shards := versions(t)
	rand.Shuffle(len(shards), func(i, j int) { shards[i], shards[j] = shards[j], shards[i] })
	changes, err := Fields(shards, Options{})
	if err != nil {
		t.Fatal(err)
	}
	type brief struct {
		Path, From, To, FirstSeen, Old, New string
		Change                              Kind
		Seen, Messages                      int64
	}
	var got []brief
	for _, c := range changes {
		if c.Method != "a.B/C" || c.Direction != "up" || c.P < 0.5 || c.P > 1 {
			t.Errorf("%+v", c)
		}
		got = append(got, brief{c.Path, c.From, c.To, c.FirstSeen, c.Old, c.New, c.Change, c.Seen, c.Messages})
	}
	want := []brief{
		{"5.7", "app/1.9", "app/1.10", "2026-01-02", "", "string", added, 60, 60},
		{"3", "app/1.9", "app/1.10", "2026-01-03", "", "string", added, 30, 60},
		{"1", "app/1.10", "app/2.0", "2026-01-04", "string", "int32", retyped, 30, 30},
		{"2", "app/1.10", "app/2.0", "2026-01-04", "int32", "repeated int32", relabelled, 30, 30},
		{"3", "app/1.10", "app/2.0", "2026-01-04", "string", "", notSeen, 30, 0},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestSameVersion: one version, or the same traffic with another version, is no change.
func TestSameVersion(t *testing.T) {
	t.Parallel()
	samples := [][]byte{number(text(nil, 1, "some words"), 2, 500), number(text(nil, 1, "other words"), 2, 700)}
	for _, shards := range [][]Shard{
		nil,
		{shard(t, "a/1", "2026-01-01", samples...)},
		{shard(t, "a/1", "2026-01-01", samples...), shard(t, "a/1", "2026-01-02", samples[0])},
		{shard(t, "a/1", "2026-01-01", samples...), shard(t, "a/2", "2026-01-02", samples...)},
	} {
		if changes, err := Fields(shards, Options{}); err != nil || len(changes) != 0 {
			t.Errorf("%+v, %v", changes, err)
		}
	}
}

// TestRecursive: a type that contains itself has finitely many paths.
func TestRecursive(t *testing.T) {
	t.Parallel()
	tree := func(depth int) []byte {
		m := number(text(nil, 1, "a name of some length"), 2, 77)
		for i := range depth {
			m = message(number(text(nil, 1, "another name of some length"), 2, uint64(i)), 3, m)
		}
		return m
	}
	changes, err := Fields([]Shard{
		shard(t, "a/1", "2026-01-01", tree(1), tree(2)), shard(t, "a/2", "2026-01-02", tree(30), tree(40)),
	}, Options{})
	if err != nil || len(changes) > 200 {
		t.Errorf("%d changes, %v", len(changes), err)
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	part := func(method, client, day string) sources.Part {
		return sources.Part{Method: method, Direction: "up", Client: client, Day: day}
	}
	changes := Methods([]sources.Part{
		part("a.B/C", "app/1", "2026-01-01"), part("a.B/C", "app/2", "2026-01-03"),
		part("a.B/New", "app/2", "2026-01-05"), part("a.B/New", "app/2", "2026-01-04"), part("a.B/New", "app/3", "2026-01-06"),
		part("a.B/Other", "other/1", "2026-01-09"), part("", "app/9", "2026-01-01"),
	})
	want := []Change{{Method: "a.B/New", Change: added, From: "app/1", To: "app/2", FirstSeen: "2026-01-04", P: 1}}
	if d := cmp.Diff(want, changes); d != "" {
		t.Error(d)
	}
}

func TestShardOf(t *testing.T) {
	t.Parallel()
	shards := versions(t)
	if s, err := ShardOf(shards[0].Evidence); err != nil || s.Part != shards[0].Part {
		t.Errorf("%+v, %v", s.Part, err)
	}
	merged := infer.NewEvidence()
	if _, err := ShardOf(merged); err == nil || !strings.Contains(err.Error(), "does not name the version of the client") {
		t.Error(err)
	}
	merged.Merge(shards[0].Evidence)
	merged.Merge(shards[1].Evidence)
	if _, err := ShardOf(merged); err == nil || !strings.Contains(err.Error(), "merged from 2 evidence files") {
		t.Error(err)
	}
}

func TestCompareVersions(t *testing.T) {
	t.Parallel()
	ordered := []string{"", "app/1.9", "app/1.09.1", "app/1.10", "app/1.10-beta", "app/2", "b"}
	for i, a := range ordered {
		for j, b := range ordered {
			got := CompareVersions(a, b)
			if (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%q, %q: %d", a, b, got)
			}
		}
	}
}
