package model

import (
	"unwire/schema/bundle/protoname"

	"google.golang.org/protobuf/types/descriptorpb"
)

// Estimated memory of definitions in bytes, from the script or descriptor to the printed file. They were measured
// with files of 100,000 equal elements. The time is about 7 s for each GiB.
const (
	// packageMemory is for a package, which becomes a file.
	packageMemory = 24 << 10
	// typeMemory is for a message, an enum or a service.
	typeMemory = 4 << 10
	// fieldMemory is for a field, an extension or a method.
	fieldMemory = 2 << 10
	// valueMemory is for a value of an enum.
	valueMemory = 1 << 10
)

// A Meter counts the memory of definitions while they are read.
type Meter struct {
	// Spend, if set, is called with estimated bytes of memory, from time to time.
	Spend func(bytes int) error
	// Refused is the first error of Spend.
	Refused error
	// packages has the packages that were counted.
	packages map[string]bool
}

// Claim counts memory. It reports whether the definitions may be kept.
func (m *Meter) Claim(bytes int) bool {
	if m.Spend != nil && m.Refused == nil {
		m.Refused = m.Spend(bytes)
	}
	return m.Refused == nil
}

// ClaimType counts the memory of a type without its fields. It reports whether the type may be kept.
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

// ClaimFields counts the fields, values and methods of definitions that were added since the last call.
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

// SkipCounted marks all definitions as counted.
func (f *Found) SkipCounted() {
	f.counted = counts{len(f.Messages), len(f.Enums), len(f.Services), len(f.Extensions)}
}

// counts are numbers of definitions by kind.
type counts struct {
	messages, enums, services, extensions int
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

// memoryOfMessage is MemoryOf for a message. The parser of protobuf limits its depth.
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
