package model

import (
	"unwire/schema/bundle/protoname"

	"google.golang.org/protobuf/types/descriptorpb"
)

// Estimates of memory in bytes per definition, for all steps from reading it to printing the .proto file. They
// were measured with files of 100,000 equal elements. Processing 1 GiB of such memory takes about 7 s.
const (
	// packageMemory is the estimated memory, in bytes, for a package, which becomes a file.
	packageMemory = 24 << 10
	// typeMemory is the estimated memory, in bytes, for a message, an enum or a service without its fields,
	// values or methods.
	typeMemory = 4 << 10
	// fieldMemory is the estimated memory, in bytes, for a field, an extension or a method.
	fieldMemory = 2 << 10
	// valueMemory is the estimated memory, in bytes, for a value of an enum.
	valueMemory = 1 << 10
)

// A Meter limits the estimated memory of definitions while they are extracted.
type Meter struct {
	// Spend, if set, is called with the number of further bytes of estimated memory. An error means that the
	// limit is exceeded.
	Spend func(bytes int) error
	// Refused is the first error of Spend, or nil.
	Refused error
	// packages has the packages whose memory was counted.
	packages map[string]bool
}

// Claim counts memory in bytes. It reports whether that is within the limit.
func (m *Meter) Claim(bytes int) bool {
	if m.Spend != nil && m.Refused == nil {
		m.Refused = m.Spend(bytes)
	}
	return m.Refused == nil
}

// ClaimType counts the memory of the type full without its fields. It reports whether that is within the limit.
func (m *Meter) ClaimType(full string) bool {
	n := typeMemory + len(full)
	if pkg := protoname.Package(full); !m.packages[pkg] {
		if m.packages == nil {
			m.packages = map[string]bool{}
		}
		m.packages[pkg] = true
		n += packageMemory
	}
	return m.Claim(n)
}

// ClaimFields counts the memory of the fields, values and methods of definitions that were added to f since the
// last call. It reports whether that is within the limit.
func (m *Meter) ClaimFields(f *Found) bool {
	from := f.counted
	n := fieldMemory * (len(f.Extensions) - from.extensions)
	for _, m := range f.Messages[from.messages:] {
		n += fieldMemory * len(m.Fields)
	}
	for _, e := range f.Enums[from.enums:] {
		n += valueMemory * len(e.Values)
	}
	for _, s := range f.Services[from.services:] {
		n += fieldMemory * len(s.Methods)
	}
	f.SkipCounted()
	return m.Claim(n)
}

// SkipCounted marks all definitions as counted, so that ClaimFields ignores them.
func (f *Found) SkipCounted() {
	f.counted = counts{len(f.Messages), len(f.Enums), len(f.Services), len(f.Extensions)}
}

// counts are numbers of definitions, by kind.
type counts struct {
	// messages is the number of message types.
	messages int

	// enums is the number of enum types.
	enums int

	// services is the number of RPC services.
	services int

	// extensions is the number of protobuf extensions.
	extensions int
}

// MemoryOf returns the estimated memory in bytes of everything that a descriptor declares.
func MemoryOf(f *descriptorpb.FileDescriptorProto) int {
	n := packageMemory + fieldMemory*len(f.Extension)
	for _, e := range f.EnumType {
		n += memoryOfEnum(e)
	}
	for _, s := range f.Service {
		n += typeMemory + fieldMemory*len(s.Method)
	}
	for _, m := range f.MessageType {
		n += memoryOfMessage(m)
	}
	return n
}

// memoryOfMessage is MemoryOf for a message and everything nested in it.
func memoryOfMessage(m *descriptorpb.DescriptorProto) int {
	n := typeMemory + fieldMemory*(len(m.Field)+len(m.Extension)+len(m.OneofDecl))
	for _, e := range m.EnumType {
		n += memoryOfEnum(e)
	}
	for _, nested := range m.NestedType {
		n += memoryOfMessage(nested)
	}
	return n
}

// memoryOfEnum is MemoryOf for an enum.
func memoryOfEnum(e *descriptorpb.EnumDescriptorProto) int {
	return typeMemory + valueMemory*len(e.Value)
}
