package model

import (
	"context"

	"google.golang.org/protobuf/types/descriptorpb"
)

// Definitions are everything that was extracted from a set of related scripts.
type Definitions struct {
	// Found has the messages, enums and services that were found in all scripts.
	Found
	// Files are the descriptors that are embedded in the scripts.
	Files []*descriptorpb.FileDescriptorProto
	// From has the path of the script that contains the descriptor, for each element of Files.
	From []string
	// Outlets maps the path of each script to its exports.
	Outlets map[string]Outlets
}

// A Built is the result of converting definitions to descriptors.
type Built struct {
	// Files are the descriptors: each has one package and no dependencies.
	Files []*descriptorpb.FileDescriptorProto
	// Notes maps the full names of messages, fields and other elements to their comments.
	Notes map[string]string
	// Open are the messages, fields and other elements whose definitions are incomplete.
	Open []Unresolved
}

// Build converts the definitions to descriptors: it merges duplicates, resolves references and restores the
// spelling of names. It ends early if ctx ends.
func (d *Definitions) Build(ctx context.Context) Built {
	b := newBuilder(ctx, d)
	// Descriptors that scripts contain are used as they are.
	files := append(b.build(), d.Files...)
	return Built{Files: files, Notes: b.notes, Open: append(d.Open, b.open...)}
}

// Found collects the definitions found in one or more scripts.
type Found struct {
	// Messages are the extracted message types.
	Messages []*Message
	// Enums are the extracted enums.
	Enums []*Enum
	// Services are the extracted services.
	Services []*Service
	// Extensions are the extracted extensions.
	Extensions []*Field
	// Refs are all references to types. They are resolved after all scripts were read.
	Refs []*Ref
	// Open are the messages, fields and other elements whose definitions are incomplete.
	Open []Unresolved

	// counted is how many definitions a Meter has counted together with their fields.
	counted counts
}

// Defs returns the messages and enums among the definitions.
func (f *Found) Defs() []*Def {
	var list []*Def
	for _, m := range f.Messages {
		list = append(list, &m.Def)
	}
	for _, e := range f.Enums {
		list = append(list, &e.Def)
	}
	for _, s := range f.Services {
		list = append(list, &s.Def)
	}
	return list
}
