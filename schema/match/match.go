// Package match ranks which of the known messages an anonymous one may be. Samples and
// definitions go in; a Result with Candidates comes out. Targets are the messages in a
// capture that are to be matched.
//
// Candidates compete by description length: how many bits it takes to write the samples
// down if they are of a type. A score is the sum of the costs of all values. What a type
// declares is a veto where the bytes cannot be that; all else is a price. Types that
// nothing in the samples distinguishes are ties, and the fields that would distinguish
// them are named.
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

// Options tunes a Matcher. The zero value is the default.
type Options struct {
	// candidates, beside ties of the first, and vetoed types in a result; default 10
	Top int

	// distinct samples that are looked at; default 2,000
	MaxSamples int

	// of their trees, together; default 1,000,000
	MaxNodes int
}

// A Sample is a message: the fields of one node of a tree, 0 for all of it.
type Sample struct {
	Tree *wire.Tree
	Node int32
}

// A Conclusion says how much a result tells.
type Conclusion string

const (
	// one type, by a margin
	Matched Conclusion = "match"

	// a few types that the samples do not tell apart
	Tied Conclusion = "tie"

	// too little to go by: empty, or what many types would hold
	undecided Conclusion = "undecided"

	// no type that explains more than half
	NoMatch Conclusion = "none"
)

// A Result is the types that samples may be of, the best first.
type Result struct {
	Conclusion Conclusion `json:"verdict"`

	// given
	Samples int `json:"samples"`

	// of them, that are no message and were left out
	Malformed int `json:"malformed"`

	// and looked at
	Distinct int `json:"distinct"`

	// of those
	Bytes int64 `json:"bytes"`

	// that were compared
	Types int `json:"types"`

	// of which no veto ruled out, and that have a field of the samples
	Possible   int         `json:"possible"`
	Candidates []Candidate `json:"candidates"`

	// that would be the best without their vetoes
	Vetoed []Candidate `json:"vetoed"`
	// Settle says which fields would decide among ties, of each tied type the first few.
	Settle []string `json:"settle,omitempty"`
}

// A Candidate is a type with what speaks for and against it.
type Candidate struct {
	// the same for ties; 0 for vetoed ones
	Rank    int    `json:"rank,omitempty"`
	Message string `json:"message"`

	// among the possible types, if the message is of one of them
	P float64 `json:"p"`

	// description length
	Bits float64 `json:"bits"`

	// of Result.Bytes
	Bytes int64 `json:"explained"`

	// paths of fields that the type has not, the first of them
	Unknown []string `json:"unknown"`

	// other types of the same rank
	Ties int `json:"ties"`

	// why it cannot be this type, with the path
	Vetoes []string `json:"vetoes"`
}

const (
	defaultTop        = 10
	defaultMaxSamples = 2000
	defaultMaxNodes   = 1_000_000

	// samples after which only the best types stay
	firstLook = 24

	// of them
	stay      = 200
	equalBits = 1e-6

	// bits by which a type has to be the better one not to be a tie
	margin = 4.0

	// ties that are named beyond Options.Top
	maxNamed = 100

	// more tied types than this decide nothing
	maxTies = 5

	// the probability of a match
	surely = 0.6

	// lengths are taken for half as sure as they say: fields are not independent
	lengthTrust = 0.5
)

// A Matcher compares messages with all types of a schema.
//
// Shape: the schema's own messages, and those of google/protobuf that they use.
// It may be used by several goroutines at once.
type Matcher struct {
	o     Options
	types []*typ
}

// New returns a Matcher for the types of s.
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

// Match ranks the types that all of the samples may be of. Equal samples count once.
func (m *Matcher) Match(samples []Sample) *Result {
	r := &Result{Samples: len(samples), Candidates: []Candidate{}, Vetoed: []Candidate{}}
	trees := m.distinct(samples, r)
	var rows []*row
	for _, ty := range m.types {
		if !ty.entry {
			rows = append(rows, newRow(ty))
		}
	}
	r.Types = len(rows)
	fields := false
	for i, s := range trees {
		sc := newScorer(s.Tree)
		fields = fields || len(sc.grouped(s.Node)) > 0
		if i == firstLook {
			rows = best(r, rows)
		}
		for _, row := range rows {
			row.addSample(sc.message(row.ty, s.Node, 0))
		}
	}
	rank(r, rows, fields, m.o.Top)
	return r
}

// distinct returns the samples that differ, within the bounds.
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

// isMessage reports whether a sample is well-formed, as far down as its groups go.
func isMessage(s Sample) bool {
	if !s.Tree.IsMessage(s.Node) {
		return false
	}
	for c := range s.Tree.Children(s.Node) {
		if n := &s.Tree.Nodes[c]; n.Type == wire.Garbage || n.Number == 0 || n.Number > maxFieldNumber || n.Type == wire.StartGroup && n.Err != nil {
			return false
		}
	}
	return true
}

// best keeps the types that may still win, and the likeliest of those that cannot.
func best(r *Result, rows []*row) []*row {
	for _, row := range rows {
		row.sumUp()
	}
	slices.SortStableFunc(rows, compareRows)
	keep := rows[:0]
	for i, row := range rows {
		if i < stay || len(row.vetoes) == 0 && row.length <= rows[0].length+equalBits {
			keep = append(keep, row)
		} else if len(row.vetoes) == 0 && row.known > 0 {
			r.Possible++
		}
	}
	return keep
}

// compareRows puts what is possible before what is not, then the shorter before the longer.
func compareRows(a, b *row) int {
	return cmp.Or(cmp.Compare(min(len(a.vetoes), 1), min(len(b.vetoes), 1)), compareBits(a.length, b.length), cmp.Compare(a.ty.name, b.ty.name))
}

func compareBits(a, b float64) int {
	if math.Abs(a-b) <= equalBits {
		return 0
	}
	return cmp.Compare(a, b)
}

// rank fills the result from the rows of all types.
func rank(r *Result, rows []*row, fields bool, top int) {
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
			sum += math.Exp2(-lengthTrust * (row.length - possible[0].length))
		}
	}
	r.Possible += len(possible)
	ranked(r, possible, top, sum)
	r.Conclusion = conclusion(r, fields)
	if r.Conclusion == Tied {
		var tied []*typ
		for _, row := range possible[:r.Candidates[0].Ties+1] {
			tied = append(tied, row.ty)
		}
		r.Settle = distinguishingFields(tied)
	}
}

// ranked lists the possible types: top of them, and the ties of the first.
// Those within the margin of the best of a rank are of the same rank.
func ranked(r *Result, possible []*row, top int, sum float64) {
	for i := 0; i < len(possible); {
		end := i + 1
		for end < len(possible) && possible[end].length <= possible[i].length+margin {
			end++
		}
		for j, row := range possible[i:end] {
			if i+j >= top && (i > 0 || j >= maxNamed) {
				return
			}
			c := row.candidate()
			c.P = math.Round(1e6*math.Exp2(-lengthTrust*(row.length-possible[0].length))/sum) / 1e6
			c.Rank, c.Ties = i+1, end-i-1
			r.Candidates = append(r.Candidates, c)
		}
		i = end
	}
}

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
	case first.P < surely:
		return undecided
	}
	return Matched
}

// FullName is the name of the best candidate, if the conclusion is Matched.
func (r *Result) FullName() protoreflect.FullName {
	if r.Conclusion != Matched {
		return ""
	}
	return protoreflect.FullName(r.Candidates[0].Message)
}
