// Package schematest makes what the tests of the schema packages share: random
// definitions, lifelike random values for messages of a type, corpora (samples of one
// message whose true type is known), the built-in definitions and Google's, and wire
// bytes made by hand (Tags).
//
// Only tests import it.
package schematest
