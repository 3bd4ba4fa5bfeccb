package update

import (
	"unwire/schema"
	"unwire/schema/extract"
)

// A Source is a set of definitions that are to be merged into the user's files, with their origin and
// reliability.
type Source struct {
	// Name is the name in the evidence file, such as "extraction", "traffic" or "probe".
	Name string
	// Certainty says how reliable the declarations are: "reported" (found in code), "inferred" (from traffic)
	// or "assumed".
	Certainty string
	// Version is the version of the client from which the definitions come; "" if unknown.
	Version string
	// Date is the date of the source, as 2006-01-02.
	Date string
	// Schema has the definitions of the source.
	Schema *schema.Schema
	// Guessed is set if types, labels and names of types were inferred from traffic. They contradict a
	// declaration only if no bytes can be decoded with both.
	Guessed bool
	// Complete is set if the source has all elements that exist, so that others are gone.
	Complete bool
	// Known maps full names of messages in the source to their full names in the user's files, if they differ.
	Known map[string]string
	// Conflicts are contradictions that the definitions cannot express.
	Conflicts []Change
	// Left lists fields of the source that cannot be declared, with the reason.
	Left []string
	// Comments are comments on fields, by their full names in the source. They cannot contain "*/".
	Comments map[string]string
	// Fits has, by the full name of a field inferred from traffic, all types that its recorded values allow. A
	// declared type that is not among them is replaced if it is a placeholder.
	Fits map[string][]string
	// Spelled is set if names in the source are derived from lowerCamelCase, so that their spelling is a guess.
	// A declared name with the same JSON name is then no conflict.
	Spelled bool
	// Faults are the files of the source that unwire failed to read because of a defect.
	Faults []*extract.Fault
}
