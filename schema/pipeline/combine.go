package pipeline

import (
	"bytes"
	"fmt"

	"github.com/klauspost/compress/s2"

	"unwire/schema/infer"
)

// packEvidence returns the form in which evidence crosses the shuffle: its binary form, compressed.
func packEvidence(ev *infer.Evidence) ([]byte, error) {
	data, err := ev.AppendBinary(nil, subject())
	if err != nil {
		return nil, err
	}
	// The buffer of the encoder has the size of data.
	return bytes.Clone(s2.Encode(nil, data)), nil
}

// unpackEvidence is the inverse of packEvidence.
func unpackEvidence(packed []byte) (*infer.Evidence, error) {
	data, err := s2.Decode(nil, packed)
	if err != nil {
		return nil, fmt.Errorf("the compressed evidence cannot be read: %w", err)
	}
	return infer.ReadEvidence(bytes.NewReader(data))
}

// mergeNew merges evidence from further segments into ev. Evidence that was counted before changes nothing.
//
// Errors: a part of the segments was counted before and another part was not. Evidence cannot be subtracted, so
// the rest cannot be counted once. Each segment is read once in a run, so this is a defect.
func mergeNew(ev, more *infer.Evidence) error {
	switch shared := ev.Parts().Share(more.Parts()); {
	case shared == 1:
	case shared > 0:
		return fmt.Errorf("%.0f %% of the evidence was already counted, and the rest cannot be separated", 100*shared)
	default:
		ev.Merge(more)
	}
	return nil
}

// An accumulator is the evidence (statistics of messages) of one part of the traffic, from several segments of
// recordings.
//
// Beam keeps the accumulators of all parts in memory while it reads segments. Evidence that can be merged needs
// about 20 times as much memory as its packed form, so an accumulator stores packed evidence, and merges it in
// batches: only one accumulator at a time is unpacked.
type accumulator struct {
	// merged is the evidence of the batches that were merged, packed; nil if there are none.
	merged []byte
	// pending is the packed evidence that has not been merged yet.
	pending [][]byte
	// size is the size of pending in bytes.
	size int
}

// A batch is merged as soon as it is larger than leastBatch and than the evidence that was merged before. So an
// accumulator needs at most twice the memory of its packed evidence (plus leastBatch), and the number of times
// that merged evidence is unpacked grows slowly with the number of segments.
const leastBatch = 64 << 10

// add adds packed evidence to the accumulator.
func (a accumulator) add(packed ...[]byte) (accumulator, error) {
	for _, data := range packed {
		a.pending, a.size = append(a.pending, data), a.size+len(data)
	}
	if a.size <= max(leastBatch, len(a.merged)) {
		return a, nil
	}
	return a.merge()
}

// all returns the packed evidence of the accumulator: that of the merged batches, and the pending evidence.
func (a accumulator) all() [][]byte {
	if a.merged == nil {
		return a.pending
	}
	return append([][]byte{a.merged}, a.pending...)
}

// merge merges the pending evidence.
//
// Errors: as mergeNew.
func (a accumulator) merge() (accumulator, error) {
	all := a.all()
	switch len(all) {
	case 0:
		return a, nil
	case 1:
		return accumulator{merged: all[0]}, nil
	}
	ev, err := unpackEvidence(all[0])
	if err != nil {
		return a, err
	}
	for _, packed := range all[1:] {
		more, err := unpackEvidence(packed)
		if err == nil {
			err = mergeNew(ev, more)
		}
		if err != nil {
			return a, err
		}
	}
	merged, err := packEvidence(ev)
	return accumulator{merged: merged}, err
}

// encodeAccumulator returns the form in which Beam sends an accumulator between workers: packed evidence.
func encodeAccumulator(a accumulator) ([]byte, error) {
	a, err := a.merge()
	return a.merged, err
}

// decodeAccumulator is the inverse of encodeAccumulator.
func decodeAccumulator(data []byte) (accumulator, error) { return accumulator{merged: data}, nil }

// combineFn is the Beam CombineFn that merges the packed evidence of one part of the traffic.
type combineFn struct{}

// CreateAccumulator returns an accumulator without evidence.
func (*combineFn) CreateAccumulator() accumulator { return accumulator{} }

// AddInput adds the packed evidence of one segment to the accumulator.
func (*combineFn) AddInput(a accumulator, packed []byte) (accumulator, error) { return a.add(packed) }

// MergeAccumulators merges the evidence of several workers.
func (*combineFn) MergeAccumulators(a, b accumulator) (accumulator, error) {
	return a.add(b.all()...)
}

// ExtractOutput returns the merged evidence, packed.
func (*combineFn) ExtractOutput(a accumulator) ([]byte, error) { return encodeAccumulator(a) }
