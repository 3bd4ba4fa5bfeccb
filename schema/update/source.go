package update

import (
	"unwire/schema"
	"unwire/schema/extract"
)

// A Source is definitions with where they come from.
type Source struct {
	Name      string // as evidence names it: extraction, traffic, probe
	Certainty string // of what it says: reported, inferred or assumed
	Version   string // of the client, "" if unknown
	Date      string // 2006-01-02
	Schema    *schema.Schema
	// Guessed says that types, labels and the names of types are inferred from
	// bytes: they never contradict what stands in a file, unless no bytes fit both.
	Guessed bool
	// Complete says that what is not in the source is gone.
	Complete bool
	// Known maps full names of the source's messages to those of the files,
	// where they are the same type by another name.
	Known map[string]string
	// Conflicts are what the source contradicts beyond its definitions.
	Conflicts []Change
	// Left is what the source tells of fields that cannot be declared.
	Left []string
	// Fits names, by the full names of the source's fields, all types that its
	// bytes can have, where that is known of a guess: a placeholder's type that is
	// none of them is replaced.
	Fits map[string][]string
	// Spelled says that names were read in lowerCamelCase only: one that a file
	// spells in another way is no other name.
	Spelled bool
	// Faults are the files of the source at which unwire failed.
	Faults []*extract.Fault
}
