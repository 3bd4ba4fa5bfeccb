// Package replay sends a captured request again, edited or not, over the transport on which it was
// captured, and compares the answers. A replay has four phases. Each is a type that only the
// previous phase creates:
//
//	Request -> Plan -> Send -> Result
//
// A Request is a captured exchange with Changes, and can still be edited. Request.Plan resolves it.
// The planner applies edits (also as text, in the user's editor), transcodes between protobuf and
// JSON, replaces placeholders by secrets, computes headers (HeaderMaker), refreshes ids and times
// in headers, and splits a conversation that was carried by several calls. A Plan cannot be edited,
// has sent nothing yet, and shows no secrets. Everything that Changes do not affect is sent byte
// for byte. Plan.Send makes the HTTP requests, sends the frames in the captured order and pace, and
// records the exchange. A Result has the comparison and the differences. Insignificant differences
// are ignored, such as those of a Lesson: Learn sends the unedited request twice and notes what
// differs. Prerequisites are exchanges that are sent first.
//
// replay/edit edits bytes, replay/credential finds secrets, replay/outbound decides which servers
// may be contacted, and replay/live follows the ids that a server issues.
//
// Nothing leaves the machine by accident: a target that is not loopback needs Policy.Live and its
// host in Policy.AllowHosts. Request.Plan, Plan.Send and the dialer check this independently.
// Redirects are not followed and no proxy is used.
//
// Source: replay/README.md
package replay
