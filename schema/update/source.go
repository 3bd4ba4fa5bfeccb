package update

import (
	"unwire/schema"
	"unwire/schema/extract"
)

// A Source is a set of definitions with their origin and reliability.
type Source struct {
	// Name is the name in the evidence file, such as "extraction", "traffic" or "probe".
	Name string
	// Certainty of the declarations: "reported", "inferred" or "assumed".
	Certainty string
	// Version is the version of the client from which the definitions come; "" if unknown.
	Version string
	// Date is the date of the source, as 2006-01-02.
	Date string
	// Schema has the definitions of the source.
	Schema *schema.Schema
	// Guessed is set if types, labels and names of types were inferred from bytes. They contradict a declaration
	// only if no bytes fit both.
	Guessed bool
	// Complete is set if elements that the source lacks are gone.
	Complete bool
	// Known maps full names of messages in the source to their names in the files, for types whose
	// names differ.
	Known map[string]string
	// Conflicts are contradictions that the definitions cannot express.
	Conflicts []Change
	// Left describes fields of the source that cannot be declared.
	Left []string
	// Comments are comments on fields, by their full names in the source. They cannot contain "*/".
	Comments map[string]string
	// Fits has, by the full name of a guessed field, all types that its samples allow. A declared type that is
	// not among them is replaced if it is a placeholder.
	Fits map[string][]string
	// Spelled means that the source contains names in lowerCamelCase only. A declared name with the
	// same JSON name is then no conflict.
	Spelled bool
	// Faults are the files of the source that unwire failed to read because of a defect.
	Faults []*extract.Fault
}
