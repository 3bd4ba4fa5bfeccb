package pipeline

import (
	"bytes"
	"context"
	"fmt"
	"path"

	"unwire/schema/history"
	"unwire/schema/infer"
	"unwire/schema/infer/messages"
	"unwire/schema/infer/sources"
)

// shardFn is the Beam stage that merges new evidence into the evidence file of a part, and infers definitions
// from it.
type shardFn struct {
	// Output is the folder or bucket that has the evidence files and receives the new ones.
	Output Output
}

// shardName returns the path of the evidence file of a part in the output.
func shardName(p sources.Part) string { return "evidence/" + keyOf(p) + ".pb" }

// ProcessElement writes the evidence file and the definitions of one part. key is the encoded part, and packed
// its new evidence. It emits the part by its method and direction, for historyFn.
func (f *shardFn) ProcessElement(ctx context.Context, key string, packed []byte, emitPart func(string, string), emitResult func([]byte)) error {
	part, err := decodePart(key)
	if err != nil {
		return err
	}
	ev, err := unpackEvidence(packed)
	if err != nil {
		return err
	}
	// Only the published shard counts: a staged one is of another attempt at the same.
	old, err := f.Output.read(ctx, shardName(part))
	if err != nil {
		return err
	}
	if old != nil {
		before, err := infer.ReadEvidence(bytes.NewReader(old))
		if err == nil {
			err = mergeNew(before, ev)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", shardName(part), err)
		}
		ev = before
	}

	// The evidence is kept even if no definitions can be inferred from it.
	data, err := ev.AppendBinary(nil, subject())
	if err != nil {
		return err
	}
	if err := f.Output.stage(ctx, shardName(part), data); err != nil {
		return err
	}
	if err := f.define(ctx, part, ev); err != nil {
		emitResult(result{Problem: &Problem{Key: keyOf(part), Error: err.Error()}}.encode())
	}
	emitResult(result{Shard: &ShardRecord{Key: keyOf(part), Part: part, Segments: len(ev.Parts().Segments(part)), Bytes: int64(len(data))}}.encode())
	emitPart(part.Method+" "+part.Direction, key)
	return nil
}

// define writes the definitions inferred from the evidence of a part.
func (f *shardFn) define(ctx context.Context, part sources.Part, ev *infer.Evidence) error {
	in, err := infer.Infer(ev, infer.Options{Profile: subject()})
	if err != nil {
		return err
	}
	if err := messages.Write(in, ev, ""); err != nil {
		return err
	}
	for name, text := range in.Files {
		if err := f.Output.stage(ctx, path.Join("proto", keyOf(part), name), []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// historyFn is the Beam stage that finds what changed between versions of the clients of a method.
type historyFn struct {
	// Output is where evidence files are read.
	Output Output
	// Parts are the encoded parts of earlier runs, by method and direction.
	Parts map[string][]string
}

// ProcessElement emits the changes of one method and direction. keys are the encoded parts of this run, whose
// evidence files are in the staging folder.
func (f *historyFn) ProcessElement(ctx context.Context, method string, keys func(*string) bool, emit func([]byte)) error {
	// Versions of this run and of earlier runs together are the history.
	all := map[string]bool{}
	for _, key := range f.Parts[method] {
		all[key] = true
	}
	for key := ""; keys(&key); {
		all[key] = true
	}
	if len(all) < 2 {
		return nil // there is no other version
	}

	// A shard that this run did not write is read as an earlier run published it.
	var shards []history.Shard
	for key := range all {
		part, err := decodePart(key)
		if err != nil {
			return err
		}
		data, err := f.Output.readStaged(ctx, shardName(part))
		if err != nil {
			return err
		}
		ev, err := infer.ReadEvidence(bytes.NewReader(data))
		if err != nil {
			return fmt.Errorf("%s: %w", shardName(part), err)
		}
		shards = append(shards, history.Shard{Part: part, Evidence: ev})
	}

	// A method whose versions cannot be compared is reported and does not stop the others.
	changes, err := history.Fields(shards, history.Options{Profile: subject()})
	if err != nil {
		emit(result{Problem: &Problem{Key: method, Error: err.Error()}}.encode())
		return nil
	}
	for i := range changes {
		emit(result{Change: &changes[i]}.encode())
	}
	return nil
}
