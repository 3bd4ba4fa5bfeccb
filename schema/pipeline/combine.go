package pipeline

import (
	"bytes"
	"fmt"

	"unwire/schema/infer"
)

// An accumulator is the merged evidence (statistics of messages) ev of one part of the traffic, from several
// segments of recordings.
type accumulator struct {
	// ev has the merged statistics of the messages.
	ev *infer.Evidence
}

// encodeAccumulator returns the form in which Beam sends an accumulator between workers.
func encodeAccumulator(a accumulator) ([]byte, error) { return a.ev.AppendBinary(nil, subject()) }

// decodeAccumulator is the inverse of encodeAccumulator.
func decodeAccumulator(data []byte) (accumulator, error) {
	ev, err := infer.ReadEvidence(bytes.NewReader(data))
	return accumulator{ev}, err
}

// add merges evidence from further segments. Evidence that was counted before changes nothing.
//
// Errors: a part of the segments was counted before and another part was not. Evidence cannot be subtracted, so
// the rest cannot be counted once. Each segment is read once in a run, so this is a defect.
func (a accumulator) add(ev *infer.Evidence) (accumulator, error) {
	switch shared := a.ev.Parts().Share(ev.Parts()); {
	case shared == 1:
	case shared > 0:
		return a, fmt.Errorf("%.0f %% of the evidence was already counted, and the rest cannot be separated", 100*shared)
	default:
		a.ev.Merge(ev)
	}
	return a, nil
}

// combineFn is the Beam CombineFn that merges the evidence of one part of the traffic.
type combineFn struct{}

// CreateAccumulator returns evidence without messages.
func (*combineFn) CreateAccumulator() accumulator { return accumulator{infer.NewEvidence()} }

// AddInput merges data, the encoded evidence from one segment, into the accumulator.
func (*combineFn) AddInput(a accumulator, data []byte) (accumulator, error) {
	part, err := decodeAccumulator(data)
	if err != nil {
		return a, err
	}
	return a.add(part.ev)
}

// MergeAccumulators merges the evidence of several workers.
func (*combineFn) MergeAccumulators(a, b accumulator) (accumulator, error) { return a.add(b.ev) }

// ExtractOutput returns the merged evidence in its binary form.
func (*combineFn) ExtractOutput(a accumulator) ([]byte, error) { return encodeAccumulator(a) }
