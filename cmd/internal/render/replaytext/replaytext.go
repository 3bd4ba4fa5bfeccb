// Package replaytext prints what is about to be sent, and the outcome, for people: plans and
// results of replays, suites, verifications, probes, and the credentials for them.
//
// Results of the libraries and objects of the contract go in, text comes out.
//
// Suites are printed as TAP, a table or JUnit. Hints say what to do about a request
// that got no answer. Nothing here sends anything.
package replaytext
