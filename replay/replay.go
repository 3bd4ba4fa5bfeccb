// Package replay sends a captured request again, changed or not, over the
// transport it was captured on, and compares the answers.
//
// A replay has four phases, each a type that only the one before it makes:
//
//	Request -> Plan -> Send -> Result
//
// NewRequest reads a captured exchange, and holds the Changes to it. A Request
// is data: nothing is concluded from it, and it can still be edited.
//
// Request.Plan resolves it: it puts in edits, secrets, live identifiers and
// fresh headers, and checks where it goes. A Plan cannot be edited, sends
// nothing, and describes itself without its secrets. What Changes leave alone is
// in it byte for byte as it was captured.
//
// Plan.Send owns what happens while the exchange runs: its connection, its
// record, the order and pace of its frames. None of that is in the Plan, so a
// plan may be described, sent, and sent again.
//
// A Result belongs to the caller. It has the comparison, whose statement it is, and
// the differences, and no secrets.
//
// Other packages own the parts: replay/edit the edits of bytes and trees,
// replay/credential the secrets, replay/outbound what may leave the machine, and
// replay/live the identifiers that the server issues, and whose turn it is.
//
// Nothing leaves the machine unasked: a target that is not loopback needs
// Policy.Live and its host in Policy.AllowHosts, checked in Request.Plan, again
// in Plan.Send, and once more on the address that is dialled. Redirects are not
// followed and no proxy is used. Whether a method changes something at the
// other end is not known here: who replays one to a live host decides.
//
// Source: RESEARCH.md#replay
package replay
