// Package probe finds the fields of a request (number, kind, type and name) through the error
// messages of the server's own parser. The handler never runs: every message that a probe sends
// ends with bytes that no parser accepts.
//
// What an error message reveals depends on the runtime, so there is a package for each: es places
// canaries for protobuf-es, golang sends invalid UTF-8 to protobuf-go, names sends values of wrong
// types in JSON, and oracle chooses among them. This package has what they share. Options go in, a
// Client sends messages within their budget and keeps the journal, and a Result, or the Definition
// that is verified, comes out.
//
// Options have the ranges of field numbers to probe, and can be filled from a capture. A Question
// is a doubt about a field, with Claims that the answers decide. Run and Verify first send a
// fingerprint, which finds the protocol and the runtime. A Definition lists the fields that a
// Verification checks; each gets a Verdict. If a probe stops early, it returns what it has found so
// far.
//
// Source: replay/probe/README.md
package probe
