// Package replay sends a captured request again, changed or not, over the transport
// it was captured on, and compares the answers. A replay has four phases, each a type
// that only the one before it makes:
//
//	Request -> Plan -> Send -> Result
//
// A Request is a captured exchange with Changes to it, and can still be edited.
// Request.Plan resolves it: the planner edits frames (also as text, in the user's
// text editor), recodes between protobuf and JSON, finds secrets and puts them in
// place of placeholders, makes headers anew (a HeaderMaker) or refreshes ids and
// times in them, and splits a conversation that several calls carried. A Plan cannot
// be edited, sends nothing, and shows no secrets. What Changes leave alone is in it
// byte for byte. Plan.Send makes the HTTP requests, sends frames in their order and
// pace, and keeps a record. A Result has the comparison and the differences. Changes
// that mean nothing are ignored, such as those of a Lesson: Learn sends the unedited
// request twice, and notes what differs. Prerequisites are exchanges to send before.
//
// Edits of bytes are in replay/edit, secrets in replay/credential, what may leave the
// machine in replay/outbound, and the ids that a server issues in replay/live.
//
// Nothing leaves the machine unasked: a target that is not loopback needs Policy.Live
// and its host in Policy.AllowHosts, checked in Request.Plan, in Plan.Send, and on
// the address that is dialled. Redirects are not followed and no proxy is used.
//
// Source: replay/README.md
package replay
