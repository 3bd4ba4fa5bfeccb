package pipeline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"unwire/captures/store"
	"unwire/schema"
	"unwire/schema/history"
	"unwire/schema/infer"
)

// unwire builds the main program.
func unwire(tb testing.TB) string {
	tb.Helper()
	bin := filepath.Join(tb.TempDir(), "unwire")
	cmd := exec.Command("go", "build", "-o", bin, "./cmd/unwire")
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// inferred runs `unwire schema infer` and returns all files that it writes.
func inferred(tb testing.TB, bin string, inputs ...string) map[string]string {
	tb.Helper()
	dir := tb.TempDir()
	list := filepath.Join(dir, "inputs")
	if err := os.WriteFile(list, []byte(strings.Join(inputs, "\n")+"\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	cmd := exec.Command(bin, "schema", "infer", "-o", out+"/", "--evidence", filepath.Join(out, "evidence.json"), "@"+list)
	if err := os.MkdirAll(out, 0o700); err != nil {
		tb.Fatal(err)
	}
	if text, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, text)
	}
	return folder(tb, out)
}

// folder returns the content of all files below a folder.
func folder(tb testing.TB, dir string) map[string]string {
	tb.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		all[rel] = string(data)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

// shards returns the names of the shards of an output.
func shards(tb testing.TB, out string) []string {
	tb.Helper()
	list, err := filepath.Glob(filepath.Join(out, "evidence", "*.pb"))
	if err != nil || len(list) == 0 {
		tb.Fatalf("%d shards, %v", len(list), err)
	}
	return list
}

// segmentCount is the number of segments of TestLikeInfer: 1,000 in make long.
func segmentCount() int {
	if os.Getenv("UNWIRE_LONG") != "" {
		return 1000
	}
	return 24
}

// TestLikeInfer: many segments in random order, some of which are there under several names or are listed twice, give
// byte for byte what `unwire schema infer` gives for them at once. So do a second and a third run over more segments.
func TestLikeInfer(t *testing.T) {
	dir := t.TempDir()
	names := writeSegments(t, filepath.Join(dir, "segments"), segmentCount(), 6)
	bin := unwire(t)
	want := inferred(t, bin, names...)

	// What a retried bundle or a repeated upload causes.
	r := rand.New(rand.NewPCG(19, uint64(len(names))))
	inputs := slices.Clone(names)
	for i := range len(names) / 3 {
		from := names[r.IntN(len(names))]
		to := filepath.Join(dir, "copies", fmt.Sprintf("%d.uwc", i))
		copyFile(t, from, to)
		inputs = append(inputs, to, names[r.IntN(len(names))])
	}
	r.Shuffle(len(inputs), func(i, j int) { inputs[i], inputs[j] = inputs[j], inputs[i] })

	for name, rounds := range map[string][][]string{
		"at once":       {inputs},
		"in two rounds": {inputs[:len(inputs)/2], inputs},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "results")
			read := 0
			for _, round := range rounds {
				read += run(t, Options{Segments: round, Output: out}).Read
			}
			if read != len(names) {
				t.Errorf("%d segments were read, want %d", read, len(names))
			}
			list := shards(t, out)
			r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			if d := cmp.Diff(want, inferred(t, bin, list...)); d != "" {
				t.Error(d)
			}
			if left := folder(t, out); left[".staging"] != "" {
				t.Error("the staging folder is left")
			}
		})
	}
}

func copyFile(tb testing.TB, from, to string) {
	tb.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o700)
	}
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// TestOutput: the files of an output, their meaning, and that a second run over the same segments does nothing.
func TestOutput(t *testing.T) {
	dir := t.TempDir()
	names := writeSegments(t, filepath.Join(dir, "segments"), 8, 4)
	defs, err := schema.FromTexts(map[string]string{"shop.proto": `syntax = "proto3"; package shop.v1;
		service ShopService { rpc List(Request) returns (Response); }
		message Request { string id = 1; int64 n = 2; string text = 3; bytes inner = 4; double d = 5; }
		message Response { string id = 1; string n = 2; }`})
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "results")
	o := Options{Segments: []string{filepath.Join(dir, "segments", "**")}, Output: out, Definitions: defs}
	m := run(t, o).Manifest
	if len(m.Segments) != 8 || len(m.Problems) != 0 || m.Findings == 0 || m.Coverage == 0 {
		t.Errorf("%+v", m)
	}
	for _, s := range m.Segments {
		if s.Exchanges != 4 || s.Definitions != m.Definitions || s.First.IsZero() {
			t.Errorf("%+v", s)
		}
	}

	// Four days of two methods in two directions.
	if len(m.Shards) != 16 {
		t.Errorf("%d shards", len(m.Shards))
	}
	files := folder(t, out)
	for _, shard := range m.Shards {
		ev, err := infer.ReadEvidenceFile(filepath.Join(out, "evidence", shard.Key+".pb"))
		if err != nil || ev == nil {
			t.Fatal(shard.Key, err)
		}
		if s, err := history.ShardOf(ev); err != nil || s.Part != shard.Part || len(ev.Parts()[0].Segments) != 2 {
			t.Errorf("%s: %+v, %v", shard.Key, s.Part, err)
		}
		text := files[filepath.Join("proto", shard.Key, "shop", "v1", "inferred.proto")]
		if !strings.Contains(text, "package shop.v1;") {
			t.Errorf("%s: %.200s", shard.Key, text)
		}
	}

	var findings []string
	rows, err := readRows[Finding](t.Context(), Output{URL: out}, findingsName)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range rows {
		if f.Seen == 0 || len(f.Frames) == 0 || f.Client == "" || f.Day == "" {
			t.Errorf("%+v", f)
		}
		findings = append(findings, fmt.Sprintf("%s %s.%d%s", f.Kind, f.Message, f.Number, map[bool]string{true: "." + f.Name}[f.Kind == "unknown_method"]))
	}
	for _, want := range []string{"unknown shop.v1.Request.9", "contradicted shop.v1.Response.2", "unknown_method shop.v1.ShopService.0.Run"} {
		if !slices.Contains(findings, want) {
			t.Errorf("no finding %s in %q", want, slices.Compact(findings))
		}
	}

	// Version 1.10 follows 1.9, and has field 9 from its second day on.
	var added []history.Change
	for line := range strings.Lines(files[driftName]) {
		var c history.Change
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		if c.Change == "added" {
			added = append(added, c)
		}
	}
	if len(added) != 2 {
		t.Errorf("%d fields were added: %+v", len(added), added)
	}
	for _, c := range added {
		if c.Path != "9" || c.Direction != "up" || c.From != "shop/1.9" || c.To != "shop/1.10" || c.FirstSeen != "2026-01-05" || c.New != "string" {
			t.Errorf("%+v", c)
		}
	}

	// Nothing is new, in whatever order, and with other definitions only the findings are.
	if r := run(t, o); r.Read != 0 || r.Listed != 8 {
		t.Errorf("%d of %d read again", r.Read, r.Listed)
	}
	if d := cmp.Diff(files, folder(t, out)); d != "" {
		t.Errorf("a second run changed files: %s", d)
	}
	o.Definitions, err = schema.FromTexts(map[string]string{"shop.proto": `syntax = "proto3"; package shop.v1; message Other {}`})
	if err != nil {
		t.Fatal(err)
	}
	o.Segments = names
	again := run(t, o).Manifest
	if again.Definitions == m.Definitions || again.Findings == 0 {
		t.Errorf("%+v", again)
	}
	for name, text := range folder(t, out) {
		if strings.HasPrefix(name, "evidence") && text != files[name] {
			t.Errorf("%s changed with the definitions", name)
		}
	}
}

// TestInterrupted: a run that ends before its commit changes nothing; one that ends after it is completed by the next.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	names := writeSegments(t, filepath.Join(dir, "segments"), 6, 4)
	whole := filepath.Join(dir, "whole")
	run(t, Options{Segments: names, Output: whole})
	want := folder(t, whole)

	for _, stop := range []string{"before the commit", "during the copying"} {
		t.Run(stop, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "results")
			run(t, Options{Segments: names[:3], Output: out})
			if stop == "before the commit" {
				o := Output{URL: out, Run: "run"}
				if err := o.stage(t.Context(), "evidence/half.pb", []byte("half")); err != nil {
					t.Fatal(err)
				}
			} else {
				interruptPublishing(t, out, whole)
			}
			run(t, Options{Segments: names, Output: out})
			if d := cmp.Diff(want, folder(t, out)); d != "" {
				t.Error(d)
			}
		})
	}
}

// interruptPublishing leaves an output as a run would that was killed after its first file was copied: all files of the
// run are staged, and one is in its place.
func interruptPublishing(t *testing.T, out, whole string) {
	t.Helper()
	o := Output{URL: out, Run: "run"}
	first := true
	for name, data := range folder(t, whole) {
		if err := o.stage(t.Context(), name, []byte(data)); err != nil {
			t.Fatal(err)
		}
		if first && strings.HasPrefix(name, "evidence/") {
			if err := os.WriteFile(filepath.Join(out, name), []byte(data), 0o600); err != nil {
				t.Fatal(err)
			}
			first = false
		}
	}
	if err := o.commit(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
}

// TestProblems: what is no capture, and what is damaged, is reported; everything else counts.
func TestProblems(t *testing.T) {
	dir := t.TempDir()
	names := writeSegments(t, dir, 3, 4)
	if err := os.WriteFile(names[1], []byte("this is no capture"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := run(t, Options{Segments: []string{dir + "/*.uwc"}, Output: filepath.Join(dir, "results")}).Manifest
	if len(m.Problems) != 1 || m.Problems[0].URL != names[1] || len(m.Segments) != 2 {
		t.Errorf("%+v", m)
	}
	if text := m.Problems[0].Error; text != "the file is not an unwire capture: the file is not an SQLite database" {
		t.Errorf("the problem is %q", text)
	}

	// A damaged segment has several errors with the same cause.
	err := fmt.Errorf("decode: captures: f.uwc: damaged capture: page 7\ncaptures: f.uwc: damaged capture: page 7\ncaptures: f.uwc: exchange 3")
	if text := problemText("f.uwc", err); text != "damaged capture: page 7; exchange 3" {
		t.Errorf("the problem is %q", text)
	}
}

func TestErrors(t *testing.T) {
	dir := t.TempDir()
	writeSegments(t, dir, 1, 2)
	if err := os.MkdirAll(dir+"/other", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/other/manifest.json", []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for reason, o := range map[string]Options{
		"needs segments":      {Output: dir},
		"matches no segment":  {Segments: []string{dir + "/*.txt"}, Output: dir},
		"no such file":        {Segments: []string{dir + "/missing.uwc"}, Output: dir},
		"not a manifest":      {Segments: []string{dir + "/*.uwc"}, Output: dir + "/other"},
		"is not this machine": {Segments: []string{"s3://bucket/x"}, Output: dir},
		"is not the name":     {Segments: []string{"s3://B/x"}, Output: dir, Access: Access{Endpoint: "http://127.0.0.1:1"}},
	} {
		if _, err := Run(t.Context(), "prism", o); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%v, want %q", err, reason)
		}
	}
}

// TestCombineLaws: accumulators merge in any order, and what arrives twice changes nothing. A part of what was counted
// is refused.
func TestCombineLaws(t *testing.T) {
	dir := t.TempDir()
	var f combineFn
	var inputs [][]byte
	for _, name := range writeSegments(t, dir, 4, 4) {
		s, err := store.Open(name, store.ReadOptions{Profile: subject()})
		if err != nil {
			t.Fatal(err)
		}
		x := extraction{sum: fmt.Sprintf("%064x", len(inputs)), capture: s, result: func([]byte) {}}
		merged := f.CreateAccumulator()
		if err := x.evidence(t.Context(), func(_ string, packed []byte) {
			if merged, err = f.AddInput(merged, packed); err != nil {
				t.Fatal(err)
			}
		}); err != nil {
			t.Fatal(err)
		}
		packed, err := encodeAccumulator(merged)
		if err != nil {
			t.Fatal(err)
		}
		inputs = append(inputs, packed)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	fold := func(order ...int) accumulator {
		a := f.CreateAccumulator()
		for _, i := range order {
			var err error
			if a, err = f.AddInput(a, inputs[i]); err != nil {
				t.Fatal(err)
			}
		}
		return a
	}
	output := func(a accumulator, err error) []byte {
		if err != nil {
			t.Fatal(err)
		}
		data, err := f.ExtractOutput(a)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	want := output(fold(0, 1, 2, 3), nil)
	for name, got := range map[string][]byte{
		"another order":      output(fold(3, 1, 0, 2), nil),
		"an input twice":     output(fold(0, 1, 1, 2, 0, 3), nil),
		"two accumulators":   output(f.MergeAccumulators(fold(2, 0), fold(3, 1))),
		"grouped otherwise":  output(f.MergeAccumulators(fold(3), fold(0, 1, 2))),
		"one that was there": output(f.MergeAccumulators(fold(0, 1, 2, 3), fold(2, 1))),
	} {
		if !bytes.Equal(got, want) {
			t.Errorf("%s gives other evidence", name)
		}
	}
	// Where the batches end decides when the error is found: at the latest, in the output.
	some, err := encodeAccumulator(fold(0, 1))
	if err != nil {
		t.Fatal(err)
	}
	others, err := encodeAccumulator(fold(1, 2))
	if err != nil {
		t.Fatal(err)
	}
	both, err := f.MergeAccumulators(accumulator{merged: some}, accumulator{merged: others})
	if err == nil {
		_, err = f.ExtractOutput(both)
	}
	if err == nil || !strings.Contains(err.Error(), "already counted") {
		t.Errorf("a part of what was counted: %v", err)
	}
}

// TestAccumulatorIsSmall: however many segments are added, an accumulator has at most twice the merged evidence, packed,
// and a batch. The segments may come in any order.
func TestAccumulatorIsSmall(t *testing.T) {
	var f combineFn
	var inputs [][]byte
	for i, name := range writeWideSegments(t, t.TempDir(), 6) {
		s, err := store.Open(name, store.ReadOptions{Profile: subject()})
		if err != nil {
			t.Fatal(err)
		}
		x := extraction{sum: fmt.Sprintf("%064x", i), capture: s, result: func([]byte) {}}
		if err := x.evidence(t.Context(), func(_ string, packed []byte) { inputs = append(inputs, packed) }); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}

	var want []byte
	r := rand.New(rand.NewPCG(19, 4))
	for range 3 {
		a, merges := f.CreateAccumulator(), 0
		for _, packed := range inputs {
			var err error
			if a, err = f.AddInput(a, packed); err != nil {
				t.Fatal(err)
			}
			size := 0
			for _, pending := range a.pending {
				size += len(pending)
			}
			if size > max(len(a.merged), leastBatch) {
				t.Errorf("%d bytes of %d are not merged", size, len(a.merged)+size)
			}
			if len(a.pending) == 0 {
				merges++
			}
		}
		if merges == 0 || merges > len(inputs)/2 {
			t.Errorf("%d inputs were merged in %d batches", len(inputs), merges)
		}
		got, err := f.ExtractOutput(a)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		} else if !bytes.Equal(got, want) {
			t.Error("another order gives other evidence")
		}
		r.Shuffle(len(inputs), func(i, j int) { inputs[i], inputs[j] = inputs[j], inputs[i] })
	}
}
