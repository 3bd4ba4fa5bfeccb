// Package replaytext prints for people what is about to be sent, and what came of it:
// plans and results of replays, suites, verifications, probes, and the credentials for
// them.
//
// Results of the libraries and objects of the contract go in, text comes out.
package replaytext
