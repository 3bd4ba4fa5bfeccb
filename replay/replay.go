// Package replay rebuilds a request from a capture, edits it by path, sends it
// over the transport it was captured on, and compares the answers.
//
// A replay has two steps. NewPlan says what would be sent and to whom, and
// sends nothing; Send carries a plan out and returns a Result. What the plan
// does not change goes out byte for byte as it was captured.
//
// Nothing leaves the machine unasked: a target that is not loopback needs
// Options.Live and its host in Options.AllowHosts, checked in NewPlan, again in
// Send, and once more on the address that is dialled. Redirects are not
// followed and no proxy is used. Whether a method changes something at the
// other end is not known here: who replays one to a live host decides.
//
// Source: RESEARCH.md#replay
package replay
