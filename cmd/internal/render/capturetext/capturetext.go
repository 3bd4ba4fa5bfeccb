// Package capturetext prints results about captures for people: what an import read, what an export
// wrote, which secrets an audit found, and what doctor found about the machine.
//
// Results of the libraries and objects of the contract go in, text comes out.
//
// It prints the doctor's checks, findings of an audit, imported connections and
// exported counts, lost packets of a recording, and hints: what to do where no
// traffic came.
package capturetext
