// Package pipeline infers definitions from many captures on Apache Beam: on this machine with the embedded prism runner,
// or on a cluster.
//
//	pipeline.Register()
//	beam.Init()
//	report, err := pipeline.Run(ctx, "prism", pipeline.Options{Segments: []string{"segments/**"}, Output: "results"})
//
// Segments are captures (*.uwc), which `unwire capture --rotate SIZE --upload URL` writes to an object store. The
// stages are
//
//  1. list the segments, and find the hash of each: one that occurs twice is read once
//  2. read each segment: its evidence by method, direction, client version and day, and what definitions do not explain
//  3. merge the evidence of each part (CombinePerKey, lifted: most is merged before the shuffle)
//  4. for each part, merge it into the shard of earlier runs, and infer its definitions
//  5. for each method, find what changed between consecutive versions of a client
//  6. write the tables and the manifest, and commit
//
// A run reads only segments that the manifest does not list. Merging all shards gives byte for byte what
// `unwire schema infer` gives for the same captures.
//
// Limits: those of package infer for each part. Not more than one run may write to an output at a time.
package pipeline

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"unwire/schema"
)

// Options configure Run. Segments and Output are required.
type Options struct {
	// Segments are files or URLs of recordings, which may contain patterns as for objectstore.Match.
	Segments []string
	// Output is the folder or URL prefix of the results.
	Output string
	// Definitions are the definitions that segments are checked against; nil skips the check.
	Definitions *schema.Schema
	// Access describes how workers connect to object stores.
	Access Access
}

// A Report is the outcome of a pipeline run.
type Report struct {
	// Manifest describes the content of the output after the run.
	Manifest *Manifest
	// Listed is the number of segments that the patterns matched, and Read the number of those that were read
	// in this run.
	Listed, Read int
}

// Register registers the pipeline's functions with Beam. Call it once, before beam.Init.
func Register() {
	register.DoFn3x1[context.Context, []byte, func(string, []byte), error](&identifyFn{})
	register.DoFn5x1[context.Context, string, func(*[]byte) bool, func(string, []byte), func([]byte), error](&readFn{})
	register.DoFn6x1[context.Context, string, func(*[]byte) bool, []byte, func(string, []byte), func([]byte), error](&readAndCheckFn{})
	register.DoFn5x1[context.Context, string, []byte, func(string, string), func([]byte), error](&shardFn{})
	register.DoFn4x1[context.Context, string, func(*string) bool, func([]byte), error](&historyFn{})
	register.DoFn3x1[context.Context, int, func(*[]byte) bool, error](&finishFn{})
	register.Combiner3[accumulator, []byte, []byte](&combineFn{})
	register.Emitter1[[]byte]()
	register.Emitter2[string, []byte]()
	register.Emitter2[string, string]()
	register.Iter1[[]byte]()
	register.Iter1[string]()
	beam.RegisterCoder(reflect.TypeFor[accumulator](), encodeAccumulator, decodeAccumulator)
}

// Run builds the Beam pipeline and runs it on the runner called runner, such as "prism". If all segments were
// read in earlier runs, nothing is computed.
//
// Errors: an object cannot be read or written; a segment whose content differs from its hash. A segment that is
// damaged or not a recording is not an error, but is listed in Manifest.Problems.
func Run(ctx context.Context, runner string, o Options) (*Report, error) {
	if len(o.Segments) == 0 || o.Output == "" {
		return nil, errors.New("a pipeline needs segments and an output")
	}
	out := Output{URL: o.Output, Access: o.Access, Run: rand.Text()}
	if err := out.Recover(ctx); err != nil {
		return nil, err
	}

	// The manifest lists the segments that earlier runs read. They are read again only if the definitions changed.
	before, err := out.manifest(ctx)
	if err != nil {
		return nil, err
	}
	plan, err := newPlan(ctx, o, before)
	if err != nil {
		return nil, err
	}
	report := &Report{Manifest: before, Listed: plan.listed}
	if len(plan.segments) == 0 {
		return report, nil
	}
	p, s := beam.NewPipelineWithRoot()
	plan.build(s, o, out, before)
	if _, err := beam.Run(ctx, runner, p); err != nil {
		return nil, err
	}
	if report.Manifest, err = out.manifest(ctx); err != nil {
		return nil, err
	}
	report.Read = len(report.Manifest.Segments) - len(plan.done)
	return report, nil
}

// A plan is the work to be done in one run.
type plan struct {
	// listed is the number of segments that match the patterns.
	listed int
	// segments are those that may have to be read, as JSON (segmentRef).
	segments [][]byte
	// done are the hashes of the segments that need not be read.
	done []string
	// evidence has the hashes of the segments that only have to be checked again.
	evidence map[string]bool
	// descriptors is the serialized descriptor set of the definitions; nil if nothing is checked.
	descriptors []byte
	// hash is the SHA-256 of descriptors, in hex.
	hash string
}

// newPlan lists the segments that match, and determines which of them have to be read. before is the manifest
// of earlier runs.
func newPlan(ctx context.Context, o Options, before *Manifest) (*plan, error) {
	p := &plan{evidence: map[string]bool{}}
	if o.Definitions != nil {
		var err error
		if p.descriptors, err = o.Definitions.DescriptorSet(); err != nil {
			return nil, err
		}
		sum := sha256.Sum256(p.descriptors)
		p.hash = hex.EncodeToString(sum[:])
	} else {
		p.hash = before.Definitions
	}

	// A segment that was checked with other definitions is checked again; its evidence stays.
	for _, segment := range before.Segments {
		if o.Definitions != nil && segment.Definitions != p.hash {
			p.evidence[segment.SHA256] = true
		} else {
			p.done = append(p.done, segment.SHA256)
		}
	}
	slices.Sort(p.done)

	// A segment without a manifest has no hash yet; identifyFn computes it.
	list, err := listSegments(ctx, o.Segments, o.Access)
	if err != nil {
		return nil, err
	}
	p.listed = len(list)
	for _, ref := range list {
		if _, found := slices.BinarySearch(p.done, ref.SHA256); found {
			continue
		}
		data, err := json.Marshal(ref)
		if err != nil {
			return nil, err
		}
		p.segments = append(p.segments, data)
	}
	return p, nil
}

// build adds the stages of the run to the Beam pipeline s.
func (p *plan) build(s beam.Scope, o Options, out Output, before *Manifest) {
	refs := beam.Reshuffle(s.Scope("List"), beam.CreateList(s, p.segments))
	identified := beam.ParDo(s.Scope("Identify"), &identifyFn{Access: o.Access, Done: p.done}, refs)
	unique := beam.GroupByKey(s, identified)

	var evidence, read beam.PCollection
	config := reading{Access: o.Access, Evidence: p.evidence}
	if o.Definitions == nil {
		evidence, read = beam.ParDo2(s.Scope("Read"), &readFn{config}, unique)
	} else {
		defs := beam.SideInput{Input: beam.Create(s, p.descriptors)}
		evidence, read = beam.ParDo2(s.Scope("Read"), &readAndCheckFn{config, p.hash}, unique, defs)
	}
	merged := beam.CombinePerKey(s.Scope("Merge"), &combineFn{}, evidence)
	parts, written := beam.ParDo2(s.Scope("Infer"), &shardFn{Output: out}, merged)

	known := map[string][]string{}
	for _, shard := range before.Shards {
		method := shard.Method + " " + shard.Direction
		known[method] = append(known[method], encodePart(shard.Part))
	}
	changes := beam.ParDo(s.Scope("History"), &historyFn{Output: out, Parts: known}, beam.GroupByKey(s, parts))

	results := beam.Flatten(s, read, written, changes)
	beam.ParDo0(s.Scope("Finish"), &finishFn{Output: out, Definitions: p.hash}, beam.GroupByKey(s, beam.AddFixedKey(s, results)))
}
