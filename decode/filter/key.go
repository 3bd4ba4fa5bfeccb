package filter

import (
	"slices"
	"strings"

	"unwire/decode/envelope"
	"unwire/decode/suggest"
)

// A keyKind is the kind of value that a key of a filter takes.
type keyKind uint8

const (
	// wordKey: patterns for texts.
	wordKey keyKind = iota

	// plainKey: a number without unit.
	plainKey

	// sizeKey: a number of bytes.
	sizeKey

	// durationKey: a duration.
	durationKey

	// timeKey: an instant.
	timeKey

	// pathKey: the path of a field, and its value.
	pathKey

	// headerKey: the name of a header, and its value.
	headerKey
)

// A key is the name of a property that a filter can examine, such as status.
type key struct {
	// name is the key as users write it in a filter, such as status.
	name string

	// kind is the kind of value that the key takes, such as a number of bytes or a pattern.
	kind keyKind

	// about is the description of the key in completions.
	about string

	// words are values of the key that completion suggests.
	words []string

	// closed means that words are the only possible values. Otherwise they are examples.
	closed bool

	// part means that a pattern needs to match only a part of the property's text.
	part bool

	// sameCase means that matching is case-sensitive.
	sameCase bool

	// facts are the properties that must be known to evaluate the key.
	facts Facts
}

// isWords are the words that may follow "is:", with the facts that they depend on.
var isWords = []struct {
	name  string
	facts Facts
}{
	{"edited", Head},
	{"failed", 0},
	{"open", 0},
	{"shortened", 0},
	{"replay", Head},
	{"compressed", Frames},
	{"end", Frames},
	{"malformed", Frames},
}

// keys are all keys, in the order in which completion offers them.
var keys = []key{
	{name: "host", about: "host of the URL"},
	{name: "method", about: "remote procedure: Run, Service/Run or package.Service/Run"},
	{name: "code", about: "status of the call", words: envelope.Codes(), closed: true},
	{name: "status", kind: plainKey, about: "HTTP status"},
	{name: "is", about: "state of the exchange: failed, open, edited, shortened, replay, compressed, end, malformed", words: isNames(), closed: true},
	{name: "protocol", about: "protocol of the call", words: []string{"connect", "grpc", "grpc-web", "sse", "ndjson", "aws-eventstream", "http", "websocket", "tcp", "tls"}},
	{name: "codec", about: "proto, json, …", words: []string{"proto", "json"}},
	{name: "duration", kind: durationKey, about: "time from the start to the end"},
	{name: "size", kind: sizeKey, about: "body bytes of both directions"},
	{name: "up", kind: sizeKey, about: "body bytes from the client"},
	{name: "down", kind: sizeKey, about: "body bytes from the server"},
	{name: "started", kind: timeKey, about: "when the exchange began"},
	{name: "text", about: "text in a message", part: true, sameCase: true, facts: Frames},
	{name: "path", kind: pathKey, about: "field of a message, and its value", sameCase: true, facts: Frames},
	{name: "type", about: "full name of the message's type", facts: Frames | Types},
	{name: "dir", about: "direction of the frame", words: []string{"up", "down"}, closed: true, facts: Frames},
	{name: "header", kind: headerKey, about: "header or trailer field, and its value", facts: Head},
	{name: "url", about: "whole URL"},
	{name: "verb", about: "HTTP method", words: []string{"GET", "POST", "PUT", "DELETE"}},
	{name: "http", about: "version of HTTP", words: []string{"1.0", "1.1", "2"}},
	{name: "client", about: "client's address, process name or product", facts: Head},
	{name: "source", about: "what recorded the exchange", words: []string{"proxy", "reverse", "passive", "replay"}, facts: Head},
	{name: "outcome", about: "how the exchange ended", words: []string{"complete", "reset", "canceled", "incomplete", "failed"}, closed: true},
	{name: "frames", kind: plainKey, about: "number of frames of both directions"},
	{name: "frame", kind: plainKey, about: "number of the frame in its direction, from 0", facts: Frames},
	{name: "len", kind: sizeKey, about: "length of the message after decompression", facts: Frames},
	{name: "note", about: "text of a note", part: true, facts: Notes},
	{name: "mark", about: "mark on the exchange or anything in it", words: []string{"star"}, facts: Notes},
	{name: "id", kind: plainKey, about: "number of the exchange"},
}

// isNames returns the words that may follow "is:" in a filter.
func isNames() (names []string) {
	for _, w := range isWords {
		names = append(names, w.name)
	}
	return names
}

// keyOf returns the key with a name, or nil.
func keyOf(name string) *key {
	i := slices.IndexFunc(keys, func(k key) bool { return k.name == name })
	if i < 0 {
		return nil
	}
	return &keys[i]
}

// operators returns the operators that may follow the key.
func (k *key) operators() []string {
	switch k.kind {
	case wordKey, pathKey, headerKey:
		return []string{":"}
	}
	return []string{":", "<", "<=", ">", ">=", "=", "!="}
}

// similarKey returns the key that a misspelt name probably means, or "".
func similarKey(name string) string {
	best, least := "", 3
	for i := range keys {
		if d := suggest.Distance(strings.ToLower(name), keys[i].name); d < least && d < len(name) {
			best, least = keys[i].name, d
		}
	}
	return best
}
