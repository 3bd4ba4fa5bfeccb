// Package live adapts a captured request to the live server: identifiers that the server issued in
// the capture are replaced by those that it issues now, and each frame waits for the server's frame
// that it answers.
//
// A captured exchange goes in as Links, and the server's messages as a Dialogue. Out come the Turn
// of each of the client's frames, a Schedule that sends them in that order with the server's
// identifiers, and the IDs of calls that others depend on. The package itself sends nothing.
//
// Links find out which values of the client's frames the server issued (a Binding), also inside
// other values or in another spelling; which server frame is a question that a client's frame
// answers; and where the client sends server values back. Package values splits protobuf and JSON
// messages into values of the same form. During the exchange, a search finds the live frame for
// each captured one, a waiter decides when a client's frame may be sent, and bindings replace
// captured values by live ones. Issuers are earlier exchanges whose answers a request depends on.
//
// Source: replay/README.md#streams
package live
