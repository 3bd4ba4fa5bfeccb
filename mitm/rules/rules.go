// Package rules decides, by the rules of a file, what changes in running traffic. Load reads the file, and a Policy
// applies it to exchanges that pass a relay (package mitm/rewrite):
//
//	rules:
//	  - name: fast model
//	    match: host:api.* method:Run dir:up path:1.7
//	    set: 1.7=fast
//	  - match: method:Get dir:down text:"rate limit"
//	    delay: 2s
//
//	set, err := rules.Load("rules.yaml")
//	policy := rules.New(set, rules.Options{})
//
// match is a filter (package decode/filter). Each rule has one or several actions: set, add, delete, retype, set-raw
// (edits as in package replay/edit), replace, delay, hold, drop, duplicate, answer, fail, reset, map. They happen in
// this order. All rules that match a frame apply, in the order of the file, each to what the one before it left,
// until one of them drops the frame or ends the exchange.
//
// SchemaJSON is the JSON Schema of the file. Watch reloads it when it changes.
//
// Limits: a file of 1 MiB with 1,000 rules; files that it names have 16 MiB each.
//
// Source: mitm/README.md#rules
package rules

import (
	_ "embed"
	"time"

	"unwire/captures"
	"unwire/decode/envelope"
	"unwire/decode/filter"
	"unwire/replay/edit"
)

// SchemaJSON is the JSON Schema of a rules file.
//
//go:embed rules.schema.json
var SchemaJSON string

// A Set is the rules of a file.
type Set struct {
	// Path is that of the file.
	Path string

	rules []*rule
	cache candidateCache

	// ofCalls means that the rule.ofCall of all rules is set.
	ofCalls bool

	// hasNames is the result of HasNames.
	hasNames bool
}

// Len returns the number of rules.
func (s *Set) Len() int { return len(s.rules) }

// A rule changes the frames that its filter matches.
type rule struct {
	// Name is the name in the file, or "rule N" by its position.
	Name string

	// Line is where the rule begins in the file.
	Line int

	match *filter.Filter

	// matchLine is where match is in the file.
	matchLine int

	// ofCall means that the filter has the same value for all exchanges of a call, before their frames are seen.
	ofCall bool

	// times is how many frames the rule changes at most; 0 means all.
	times int

	// matchesEnd means that the filter names the end of a stream, which rules do not change otherwise.
	matchesEnd bool

	edits     []placedEdit
	replace   *content
	delay     time.Duration
	hold      bool
	drop      bool
	duplicate int
	answer    *answer
	fail      *failure
	reset     bool
	mapTo     string
}

// endsAtHead reports whether the rule decides about an exchange when its head is known.
func (r *rule) endsAtHead() bool { return r.answer != nil || r.fail != nil || r.reset }

// changesFrames reports whether the rule has an action for frames.
func (r *rule) changesFrames() bool {
	return r.endsAtHead() || len(r.edits) > 0 || r.replace != nil || r.delay > 0 || r.hold || r.drop || r.duplicate > 0
}

// A placedEdit is an edit with its place in the file.
type placedEdit struct {
	edit.Edit

	// line is the line, and text the action as it is written.
	line int
	text string
}

// A content is the bytes of a message as the file has them.
type content struct{ data []byte }

// An answer is given to the client in place of the server's.
type answer struct {
	status  int
	headers captures.Headers
	body    []byte
}

// A failure is an error of a call.
type failure struct{ envelope.Error }
