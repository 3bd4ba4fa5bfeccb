// Package live has a captured request fit the live server: identifiers that the
// server issued in the capture become those that it issues now, and each frame
// waits for the one that it answers.
//
// In go a captured exchange, as Links, and what the server sends, as a Dialogue.
// Out come the Turn of each of the client's frames, a Schedule that sends them
// in that order with the server's identifiers in them, and the IDs of calls
// that others depend on. The package sends nothing itself.
package live
