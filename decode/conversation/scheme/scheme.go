// Package scheme describes, as data, how a service carries one bidirectional
// stream in several calls where HTTP/2 is missing: the server's half is the
// answer to one call or several (heads), each message of the client is a call of
// its own (an append), and a request id says what belongs together.
package scheme

import (
	"strings"

	"unwire/decode/fieldpath"
)

// A Scheme is how a service splits a stream into calls.
type Scheme struct {
	Append Append
	Heads  []Head
}

// An Append is a call that carries one message of the client's half.
type Append struct {
	// RPC is the method's name.
	RPC string

	// Text and Binary are the fields of the client's message, as hex or as it is.
	Text, Binary uint64

	// ID leads to the request id.
	ID fieldpath.Path

	// Number is the field of the message's place in the stream, from 0.
	Number uint64
}

// A Head is how the server's half is asked for, and how it comes.
type Head struct {
	// Suffix ends the method's name, behind that of the bidirectional method.
	Suffix string

	// ID leads to the request id.
	ID fieldpath.Path

	// Number, Data and EOF are fields of each message of the answer that carries
	// one of the server's as base64; 0 where the answer's messages are the
	// server's own.
	Number, Data, EOF uint64
}

// Fallback is the scheme that is known: a method M is asked for as MSSE or MPoll.
//
// Source: RESEARCH.md#sse-fallback
var Fallback = Scheme{
	Append: Append{RPC: "BidiAppend", Text: 1, Binary: 4, ID: fields(2, 1), Number: 3},
	Heads: []Head{
		{Suffix: "SSE", ID: fields(1)},
		{Suffix: "Poll", ID: fields(1, 1), Number: 1, Data: 2, EOF: 3},
	},
}

func fields(numbers ...uint64) fieldpath.Path {
	var p fieldpath.Path
	for _, n := range numbers {
		p = append(p, fieldpath.Field(n))
	}
	return p
}

// HeadOf returns how a call carries the server's half, or nil.
func (s *Scheme) HeadOf(service, rpc string) *Head {
	for i := range s.Heads {
		if h := &s.Heads[i]; service != "" && len(rpc) > len(h.Suffix) && strings.HasSuffix(rpc, h.Suffix) {
			return h
		}
	}
	return nil
}

// IsAppend reports whether a call carries one message of a client's half.
func (s *Scheme) IsAppend(service, rpc string) bool {
	return service != "" && rpc == s.Append.RPC
}
