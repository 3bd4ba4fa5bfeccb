// Package live has a captured request fit the live server: identifiers that the
// server issued in the capture become those that it issues now, and each frame
// waits for the one that it answers.
//
// In go a captured exchange, as Links, and what the server sends, as a Dialogue.
// Out come the Turn of each of the client's frames, a Schedule that sends them
// in that order with the server's identifiers in them, and the IDs of calls
// that others depend on. The package sends nothing itself.
//
// Links read the captured exchange: which values of the client's frames the server
// issued (a Binding), also as inner values of others or in another spelling, which
// frame of the server is a question that a client's frame answers, and the places of
// server values that the client's frames carry on. A leaf is one value of a message
// in protobuf or JSON. While the exchange runs, a frame search finds the live frame
// for each captured one, a waiter decides when a client's frame may go, and
// replacements put live values in place of captured ones. Issuers are earlier
// exchanges whose answers a request depends on.
package live
