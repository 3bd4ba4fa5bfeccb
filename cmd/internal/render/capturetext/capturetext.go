// Package capturetext prints for people what became of captures: what an import read,
// what an export wrote, which secrets an audit found, and what doctor found about the
// machine.
//
// Results of the libraries and objects of the contract go in, text comes out.
package capturetext
