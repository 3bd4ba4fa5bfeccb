// Package render prints for people what commands find in captures and messages.
// Results of the libraries and of package query go in, text comes out, on the Output
// of package term. Commands print JSON themselves, from the contract.
//
// It prints the listing of exchanges, an exchange's head, a frame with its fields, a
// summary of neighbouring frames, and a match of a search. Hex views show bytes
// beside the fields that they are; hexrows makes their rows. Differences are printed
// in several formats, with the values of both sides (diffvalue); a series is the
// table of what varies. An explanation says why a field is read as it is. A
// transcript says who said what; live answers are printed while they are recorded;
// weights are what transcripts are scored by.
//
// Package capturetext prints results about captures, replaytext replays,
// and schematext definitions.
package render
