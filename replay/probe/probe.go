// Package probe learns field numbers, kinds, types and names of a request from
// a server's own parse errors, without its handler ever running: every message
// that it sends ends with bytes that no parser takes.
//
// What the parser of a runtime shows differs, so there is a package for each:
// es lays canaries for protobuf-es, golang sends text that is not UTF-8 to
// protobuf-go, names sends values of wrong types in JSON, and oracle picks among
// them. This package has what they share: Options go in, a Client sends messages
// within their budget and keeps the journal, and what the answers show is
// entered in a Result, or in the Definition that is verified.
//
// Options have ranges of field numbers to ask about, and can be filled from a
// capture. A Question is a doubt about a field, with Claims that the answers decide.
// Run and Verify send a fingerprint first, which finds the protocol and the runtime.
// A Definition lists the fields that a Verification checks, each with a Verdict. A
// stop ends a probe early with what was learnt. Messages are built here only as far
// as all runtimes read them alike: wrapped in the fields that lead to them.
//
// Source: replay/probe/README.md
package probe
