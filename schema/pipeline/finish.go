package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"unwire/schema/history"
	"unwire/schema/infer/sources"
)

// finishFn is the last Beam stage: it writes the files that summarize all segments, and commits the run.
type finishFn struct {
	// Output is where the files are written.
	Output Output
	// Definitions is the SHA-256 of the definitions against which segments were checked.
	Definitions string
}

// ProcessElement adds the results of this run to those of earlier runs. It is called once, with all encoded
// results.
func (f *finishFn) ProcessElement(ctx context.Context, _ int, results func(*[]byte) bool) error {
	sum, err := f.load(ctx)
	if err != nil {
		return err
	}
	for data := []byte(nil); results(&data); {
		var r result
		if err := json.Unmarshal(data, &r); err != nil {
			return err
		}
		sum.add(r)
	}
	if err := sum.stage(ctx, f.Output); err != nil {
		return err
	}
	if err := f.Output.commit(ctx, sum.replaced()); err != nil {
		return err
	}
	if err := f.Output.publish(ctx); err != nil {
		return err
	}
	return f.Output.removeStaging(ctx)
}

// A summary is the content of the files that summarize all segments, from this run and earlier ones.
type summary struct {
	// definitions is the SHA-256 of the definitions against which segments were checked.
	definitions string
	// segments are the processed segments by SHA-256.
	segments map[string]Segment
	// shards are the evidence files by key.
	shards map[string]ShardRecord
	// findings are the rows of findings.parquet by Finding.findingKey.
	findings map[string]Finding
	// coverage are the rows of coverage.parquet by Coverage.key.
	coverage map[Coverage]Coverage
	// problems are the segments and messages that could not be read, and so on.
	problems map[Problem]bool
	// changes are the changes that this run found.
	changes []history.Change
	// renewed has the keys of the evidence files that this run has written.
	renewed map[string]bool
	// methods are the methods and directions of which this run has found the changes.
	methods map[[2]string]bool
	// old are the changes that earlier runs found.
	old []history.Change
}

// load reads the results of earlier runs from the output.
func (f *finishFn) load(ctx context.Context) (*summary, error) {
	before, err := f.Output.manifest(ctx)
	if err != nil {
		return nil, err
	}
	s := &summary{
		definitions: f.Definitions,
		segments:    map[string]Segment{}, shards: map[string]ShardRecord{}, findings: map[string]Finding{}, coverage: map[Coverage]Coverage{},
		problems: map[Problem]bool{}, renewed: map[string]bool{}, methods: map[[2]string]bool{},
	}
	for _, segment := range before.Segments {
		s.segments[segment.SHA256] = segment
	}
	for _, shard := range before.Shards {
		s.shards[shard.Key] = shard
	}
	for _, p := range before.Problems {
		s.problems[p] = true
	}
	// Findings refer to definitions. All segments are checked again with others.
	if before.Definitions == f.Definitions {
		findings, err := readRows[Finding](ctx, f.Output, findingsName)
		if err != nil {
			return nil, err
		}
		for _, row := range findings {
			s.add(result{Finding: &row})
		}
		coverage, err := readRows[Coverage](ctx, f.Output, coverageName)
		if err != nil {
			return nil, err
		}
		for _, row := range coverage {
			s.add(result{Coverage: &row})
		}
	}

	// Changes of methods without new evidence are not computed again.
	data, err := f.Output.read(ctx, driftName)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(data) {
		var c history.Change
		if err := json.Unmarshal(line, &c); err != nil {
			return nil, fmt.Errorf("%s: %w", driftName, err)
		}
		s.old = append(s.old, c)
	}
	return s, nil
}

// add adds one result of this run to the summary.
func (s *summary) add(r result) {
	switch {
	case r.Segment != nil:
		s.segments[r.Segment.SHA256] = *r.Segment
	case r.Shard != nil:
		s.shards[r.Shard.Key] = *r.Shard
		s.renewed[r.Shard.Key] = true
		s.methods[[2]string{r.Shard.Method, r.Shard.Direction}] = true
	case r.Problem != nil:
		s.problems[*r.Problem] = true
	case r.Change != nil:
		s.changes = append(s.changes, *r.Change)
	case r.Finding != nil:
		f := s.findings[r.Finding.findingKey()]
		if f.Kind == "" {
			f = r.Finding.key()
		}
		f.add(*r.Finding)
		s.findings[r.Finding.findingKey()] = f
	case r.Coverage != nil:
		c, ok := s.coverage[r.Coverage.key()]
		if !ok {
			c = r.Coverage.key()
		}
		c.add(*r.Coverage)
		s.coverage[r.Coverage.key()] = c
	}
}

// history returns the changes of all methods: those of this run, those of earlier runs for other methods, and
// added methods.
func (s *summary) history() []history.Change {
	list := slices.Clone(s.changes)
	for _, c := range s.old {
		if c.Path != "" && !s.methods[[2]string{c.Method, c.Direction}] {
			list = append(list, c)
		}
	}
	var parts []sources.Part
	for _, shard := range s.shards {
		parts = append(parts, shard.Part)
	}
	list = append(list, history.Methods(parts)...)
	history.Sort(list)
	return list
}

// replaced returns the folders that this run replaces as a whole, because a file in them may no longer be
// needed.
func (s *summary) replaced() (list []string) {
	for key := range s.renewed {
		list = append(list, "proto/"+key)
	}
	slices.Sort(list)
	return list
}

// stage writes the files of the summary to the staging folder.
func (s *summary) stage(ctx context.Context, o Output) error {
	// All rows are sorted, so that the same segments give the same files.
	findings := slices.SortedFunc(maps.Values(s.findings), compareFindings)
	if err := stageRows(ctx, o, findingsName, findings); err != nil {
		return err
	}
	coverage := slices.SortedFunc(maps.Values(s.coverage), compareCoverage)
	if err := stageRows(ctx, o, coverageName, coverage); err != nil {
		return err
	}
	var drift bytes.Buffer
	changes := s.history()
	for _, c := range changes {
		line, err := json.Marshal(struct {
			V int `json:"v"`
			history.Change
		}{1, c})
		if err != nil {
			return err
		}
		drift.Write(append(line, '\n'))
	}
	if err := o.stage(ctx, driftName, drift.Bytes()); err != nil {
		return err
	}

	// The manifest counts the rows of the other files, so it comes last.
	m := Manifest{V: 1, Definitions: s.definitions, Findings: len(findings), Coverage: len(coverage), Changes: len(changes), Problems: []Problem{}, Shards: []ShardRecord{}}
	m.Segments = slices.SortedFunc(maps.Values(s.segments), func(a, b Segment) int { return cmp.Compare(a.SHA256, b.SHA256) })
	m.Shards = append(m.Shards, slices.SortedFunc(maps.Values(s.shards), func(a, b ShardRecord) int { return cmp.Compare(a.Key, b.Key) })...)
	m.Problems = append(m.Problems, slices.SortedFunc(maps.Keys(s.problems), func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Segment, b.Segment), cmp.Compare(a.URL, b.URL), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Error, b.Error))
	})...)
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return o.stage(ctx, manifestName, append(data, '\n'))
}
