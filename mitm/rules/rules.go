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

// A Set is the parsed content of a rules file.
type Set struct {
	// Path is the path of the rules file.
	Path string

	// rules are the rules in the order of the file.
	rules []*rule
	// cache remembers which rules may apply to which calls.
	cache candidateCache

	// ofCalls means that the filters of all rules have the same value for all exchanges of a call (see rule.ofCall).
	ofCalls bool

	// maps means that a rule has the action map.
	maps bool

	// hasNames means that a rule refers to fields by name, not only by number.
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

	// match selects the frames to which the rule applies.
	match *filter.Filter

	// matchLine is the line of match in the file.
	matchLine int

	// ofCall means that the filter examines only what is the same for all exchanges of a call (URL, method,
	// protocol), and frames.
	ofCall bool

	// times is how many frames the rule changes at most; 0 means all.
	times int

	// matchesEnd means that the filter mentions the end of a stream; other rules do not apply to the frames that end
	// one.
	matchesEnd bool

	// edits are the changes to fields of a message (set, add, delete, retype, set-raw), in order.
	edits []placedEdit
	// replace is the message that replaces that of the frame; nil to keep it.
	replace *content
	// delay is how long the frame is delayed; 0 for none.
	delay time.Duration
	// hold means that the frame waits until a user has decided about it.
	hold bool
	// drop means that the frame is not forwarded.
	drop bool
	// duplicate is how many additional copies of the frame are forwarded.
	duplicate int
	// answer is the response that ends the exchange in place of the server's; nil for none.
	answer *answer
	// fail is the error with which the exchange ends; nil for none.
	fail *failure
	// reset means that the exchange is reset in both directions.
	reset bool
	// mapTo is the URL of the server to which connections are redirected, scheme://host; "" for none.
	mapTo string
}

// endsAtHead reports whether the rule ends the exchange (answer, fail or reset), for which the request's head may
// suffice.
func (r *rule) endsAtHead() bool { return r.answer != nil || r.fail != nil || r.reset }

// changesFrames reports whether the rule has an action for frames.
func (r *rule) changesFrames() bool {
	return r.endsAtHead() || len(r.edits) > 0 || r.replace != nil || r.delay > 0 || r.hold || r.drop || r.duplicate > 0
}

// A placedEdit is an edit of a message with its position in the rules file, for error messages.
type placedEdit struct {
	// Edit is the change to a field of a message.
	edit.Edit

	// line is the line in the file, from 1.
	line int
	// text is the action as it is written in the file.
	text string
}

// A content is a message that a rule supplies.
type content struct {
	// data is the uncompressed message, without an envelope.
	data []byte
}

// An answer is a response that a rule sends to the client in place of the server's.
type answer struct {
	// status is the HTTP status of the answer.
	status int
	// headers are additional headers of the answer.
	headers captures.Headers
	// body is the uncompressed message or body of the answer.
	body []byte
}

// A failure is the RPC error with which a rule ends a call.
type failure struct {
	// Error is the code and message of the RPC error.
	envelope.Error
}
