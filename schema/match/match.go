// Package match ranks the known message types that an unknown message may be of.
//
// m := match.New(definitions, match.Options{})
// r := m.Match([]match.Sample{{Tree: wire.Parse(data, wire.Options{})}})
// fmt.Println(r.Conclusion, r.FullName())
//
// It uses the minimum description length principle (Rissanen 1978): the best type is the one under which the
// samples have the shortest encoding. Each value has a price in bits under its declared type, and bytes that
// contradict the type are a veto. Types that the samples do not distinguish are ties; the result names the
// fields that would decide between them. Targets collects the messages of a capture whose type is unknown.
//
// The command schema match and package update use it.
//
// Source: schema/README.md#match
package match

import (
	"cmp"
	"hash/maphash"
	"math"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/wire"
	"unwire/schema"
)

// Options configures a Matcher. The zero value works.
type Options struct {
	// Top is the maximum number of candidates in a result (in addition to ties of the first), and of vetoed
	// types. Default: 10.
	Top int

	// MaxSamples is the maximum number of distinct messages that are examined. Default: 2,000.
	MaxSamples int

	// MaxNodes is the maximum number of nodes (fields) in the trees of all messages. Default: 1,000,000.
	MaxNodes int
}

// A Sample is a message whose type is searched: a node of a parsed tree.
type Sample struct {
	// Tree is the parsed message that contains the sample.
	Tree *wire.Tree
	// Node is the index of the message in Tree; 0 is the whole message.
	Node int32
}

// A Conclusion is the overall outcome of comparing messages with all types.
type Conclusion string

// The conclusions. Their texts are part of the JSON contract.
const (
	// Matched means that one type explains the messages clearly better than all others.
	Matched Conclusion = "match"

	// Tied means that a few types fit and the messages do not distinguish them.
	Tied Conclusion = "tie"

	// undecided means that the messages are too small: empty, or such that many types fit.
	undecided Conclusion = "undecided"

	// NoMatch means that no type explains more than half of the bytes.
	NoMatch Conclusion = "none"
)

// A Result lists the types that the messages may be of, best first.
type Result struct {
	// Conclusion is the overall outcome, such as a match or a tie.
	Conclusion Conclusion `json:"verdict"`

	// Samples is the number of messages that were compared.
	Samples int `json:"samples"`

	// Malformed is the number of samples that are not well-formed messages. They were left out.
	Malformed int `json:"malformed"`

	// Distinct is the number of different messages that were examined.
	Distinct int `json:"distinct"`

	// Bytes is the total size of the distinct messages in bytes.
	Bytes int64 `json:"bytes"`

	// Types is the number of types that were compared.
	Types int `json:"types"`

	// Possible is the number of types that are not ruled out and declare at least one field of the messages.
	Possible int `json:"possible"`
	// Candidates are the most probable types, best first.
	Candidates []Candidate `json:"candidates"`

	// Vetoed are the types that would be the best candidates, but are ruled out by some message.
	Vetoed []Candidate `json:"vetoed"`
	// Settle describes which fields would decide between tied types, a few for each type.
	Settle []string `json:"settle,omitempty"`
}

// A Candidate is a possible type with the evidence for and against it.
type Candidate struct {
	// Rank is the position, beginning with 1. Tied types have the same rank; types that are ruled out have rank
	// 0.
	Rank int `json:"rank,omitempty"`
	// Message is the full name of the candidate type.
	Message string `json:"message"`

	// P is the probability of the type, from 0 to 1, given that the messages are of one of the possible types.
	P float64 `json:"p"`

	// Bits is the description length of the messages under the type, in bits; less is better.
	Bits float64 `json:"bits"`

	// Bytes is the number of bytes, out of Result.Bytes, in fields that the type declares.
	Bytes int64 `json:"explained"`

	// Unknown has the paths of the first fields that the type does not declare.
	Unknown []string `json:"unknown"`

	// Ties is the number of other types with the same rank.
	Ties int `json:"ties"`

	// Vetoes are the reasons, with field paths, why the messages cannot be of the type.
	Vetoes []string `json:"vetoes"`
}

// Defaults of Options, and parameters of the search.
const (
	// defaultTop is the default of Options.Top.
	defaultTop = 10
	// defaultMaxSamples is the default of Options.MaxSamples.
	defaultMaxSamples = 2000
	// defaultMaxNodes is the default of Options.MaxNodes.
	defaultMaxNodes = 1_000_000

	// firstLook is the number of messages after which only the best types are compared further.
	firstLook = 24

	// keepAfterFirstLook is the number of types that are then kept, in addition to ties of the first.
	keepAfterFirstLook = 200
	// equalBits is the difference in bits below which description lengths count as equal, because of rounding.
	equalBits = 1e-6

	// tieMargin is the difference in bits below which two types are tied.
	tieMargin = 4.0

	// maxNamed is the maximum number of ties that are listed beyond Options.Top.
	maxNamed = 100

	// maxTies is the maximum number of tied types; with more, the result is undecided.
	maxTies = 5

	// minMatchP is the minimum probability of the best type for a match.
	minMatchP = 0.6

	// inverseTemperature scales description lengths before they become probabilities. It is below 1 because
	// fields are not independent, so the lengths overstate the evidence.
	inverseTemperature = 0.5
)

// A Matcher finds the type of messages by comparing them with all types of a schema. It is safe for concurrent
// use.
//
// Shape: it has the schema's own messages, and those of google/protobuf that they use.
type Matcher struct {
	// o are the options, with defaults filled in.
	o Options
	// types are all message types, sorted by name.
	types []*messageType
}

// New returns a Matcher that compares messages with the types of s.
func New(s *schema.Schema, o Options) *Matcher {
	if o.Top <= 0 {
		o.Top = defaultTop
	}
	if o.MaxSamples <= 0 {
		o.MaxSamples = defaultMaxSamples
	}
	if o.MaxNodes <= 0 {
		o.MaxNodes = defaultMaxNodes
	}
	m := &Matcher{o: o}
	all := typeTable{}
	for md := range s.Messages() {
		all.addType(md)
	}
	m.types = all.sorted()
	return m
}

// Match ranks the types of which all samples (messages) may be. Equal messages count once.
func (m *Matcher) Match(samples []Sample) *Result {
	r := &Result{Samples: len(samples), Candidates: []Candidate{}, Vetoed: []Candidate{}}
	trees := m.distinct(samples, r)

	var rows []*typeScore
	for _, ty := range m.types {
		if !ty.entry {
			rows = append(rows, newTypeScore(ty))
		}
	}

	r.Types = len(rows)
	fields := false
	for i, s := range trees {
		sc := newScorer(s.Tree)
		fields = fields || len(sc.fieldsByNumber(s.Node)) > 0
		// Most types are ruled out by a few samples. Dropping them saves most of the time.
		if i == firstLook {
			rows = keepBest(r, rows)
		}
		for _, row := range rows {
			row.addSample(sc.scoreMessage(row.ty, s.Node, 0))
		}
	}
	rank(r, rows, fields, m.o.Top)
	return r
}

// distinct returns the different well-formed messages, within the limits of Options, and sets counts in r.
func (m *Matcher) distinct(samples []Sample, r *Result) []Sample {
	seed := maphash.MakeSeed()
	seen := map[uint64]bool{}
	nodes := 0
	var list []Sample
	for _, s := range samples {
		data := s.Tree.Payload(s.Node)
		h := maphash.Bytes(seed, data)
		switch {
		case seen[h]:
			continue
		case !isMessage(s):
			r.Malformed++
			continue
		}

		// The limit on nodes bounds the time; one sample is always read.
		if nodes += len(s.Tree.Nodes); len(list) == m.o.MaxSamples || nodes > m.o.MaxNodes && len(list) > 0 {
			break
		}
		seen[h] = true
		list = append(list, s)
		r.Bytes += int64(len(data))
	}
	r.Distinct = len(list)
	return list
}

// isMessage reports whether a sample is a well-formed message, including its groups.
func isMessage(s Sample) bool {
	if !s.Tree.IsMessage(s.Node) {
		return false
	}
	for c := range s.Tree.Children(s.Node) {
		if n := &s.Tree.Nodes[c]; n.Type == wire.Garbage || n.Number == 0 || n.Number > maxFieldNumber || n.Type == wire.StartGroup && !n.Sound() {
			return false
		}
	}
	return true
}

// keepBest returns the types that can still win, and the most likely of the others. It counts dropped possible
// types in r.
func keepBest(r *Result, rows []*typeScore) []*typeScore {
	for _, row := range rows {
		row.sumUp()
	}
	slices.SortStableFunc(rows, compareRows)
	keep := rows[:0]
	for i, row := range rows {
		if i < keepAfterFirstLook || len(row.vetoes) == 0 && row.length <= rows[0].length+equalBits {
			keep = append(keep, row)
		} else if len(row.vetoes) == 0 && row.known > 0 {
			r.Possible++
		}
	}
	return keep
}

// compareRows orders types that are not ruled out before others, and shorter description lengths first.
func compareRows(a, b *typeScore) int {
	return cmp.Or(cmp.Compare(min(len(a.vetoes), 1), min(len(b.vetoes), 1)), compareBits(a.length, b.length), cmp.Compare(a.ty.name, b.ty.name))
}

// compareBits compares description lengths in bits. Differences from rounding count as equal.
func compareBits(a, b float64) int {
	if math.Abs(a-b) <= equalBits {
		return 0
	}
	return cmp.Compare(a, b)
}

// rank fills the result r from the scores of all types. fields is set if any message has a field, and top is
// Options.Top.
func rank(r *Result, rows []*typeScore, fields bool, top int) {
	for _, row := range rows {
		row.sumUp()
	}
	slices.SortStableFunc(rows, compareRows)

	var sum float64
	possible := rows[:0:0]
	for _, row := range rows {
		switch {
		case len(row.vetoes) > 0:
			if len(r.Vetoed) < top {
				r.Vetoed = append(r.Vetoed, row.candidate())
			}
		case row.known > 0 || !fields:
			possible = append(possible, row)
			// The weight of a type is 2 to the power of minus its length, as in a code, at the given
			// temperature.
			sum += math.Exp2(-inverseTemperature * (row.length - possible[0].length))
		}
	}

	r.Possible += len(possible)
	listCandidates(r, possible, top, sum)
	r.Conclusion = conclusion(r, fields)
	if r.Conclusion == Tied {
		var tied []*messageType
		for _, row := range possible[:r.Candidates[0].Ties+1] {
			tied = append(tied, row.ty)
		}
		r.Settle = distinguishingFields(tied)
	}
}

// listCandidates adds the possible types to r, at most top and the ties of the first. Types within tieMargin of
// the best of a rank have the same rank. sum is the sum of the weights of all possible types, for their
// probabilities.
func listCandidates(r *Result, possible []*typeScore, top int, sum float64) {
	for i := 0; i < len(possible); {
		// All types within the margin of the best one share its rank.
		end := i + 1
		for end < len(possible) && possible[end].length <= possible[i].length+tieMargin {
			end++
		}
		for j, row := range possible[i:end] {
			if i+j >= top && (i > 0 || j >= maxNamed) {
				return
			}
			c := row.candidate()
			c.P = math.Round(1e6*math.Exp2(-inverseTemperature*(row.length-possible[0].length))/sum) / 1e6
			c.Rank, c.Ties = i+1, end-i-1
			r.Candidates = append(r.Candidates, c)
		}
		i = end
	}
}

// conclusion returns the overall outcome, given the candidates in r. fields is set if any message has a field.
func conclusion(r *Result, fields bool) Conclusion {
	if len(r.Candidates) == 0 {
		return NoMatch
	}
	first := r.Candidates[0]
	switch {
	case !fields:
		return undecided
	case 2*first.Bytes < r.Bytes:
		return NoMatch
	case first.Ties > maxTies:
		return undecided
	case first.Ties > 0:
		return Tied
	case first.P < minMatchP:
		return undecided
	}
	return Matched
}

// FullName returns the name of the best candidate if the conclusion is Matched, otherwise "".
func (r *Result) FullName() protoreflect.FullName {
	if r.Conclusion != Matched {
		return ""
	}
	return protoreflect.FullName(r.Candidates[0].Message)
}
