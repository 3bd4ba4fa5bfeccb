// Package schematest provides what the tests of the schema packages share: random definitions, realistic random
// values for messages of a type, corpora (samples of a message whose true type is known), the built-in
// definitions and Google's, and hand-made wire bytes (Tags). Only tests import it.
package schematest
