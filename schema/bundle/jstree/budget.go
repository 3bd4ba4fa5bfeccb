package jstree

import (
	"fmt"
	"strings"
)

// Limits of the work for one script, which may be hostile. When a limit is reached, only literal text is read:
// names are no longer followed, and no values are composed.
const (
	// minSteps is the number of names and expressions that are followed, and of brackets that are climbed.
	minSteps = 20 << 20

	// stepsPerToken is added for each token.
	stepsPerToken = 8

	// maxScanned is the number of tokens that are searched for single fields.
	maxScanned = 1 << 30

	// minMemory is the estimated memory in bytes of definitions and composed values.
	minMemory = 32 << 20

	// memoryPerToken is added for each token.
	memoryPerToken = 1 << 10

	// memoryPerByte is added for each byte of the script.
	memoryPerByte = 256

	// minString is the maximum size in bytes of a composed string, in addition to the size of the script.
	minString = 1 << 16

	// minParsed is the number of parts of expressions that are parsed.
	minParsed = 1 << 18

	// parsedPerToken is added for each token.
	parsedPerToken = 16
)

// Estimated memory of values and definitions in bytes. A small literal that is copied into many lists or
// messages is counted each time.
const (
	// partMemory is for a part of a composed string, in addition to its bytes.
	partMemory = 16

	// elementMemory is for an element of a list, which becomes a field, an enum value or a method.
	elementMemory = 2048

	// PropertyMemory is for a property of a composed object.
	PropertyMemory = 128

	// DefinitionMemory is for a message, an enum or a service.
	DefinitionMemory = 4096

	// TextMemory is the estimated memory for each byte of a descriptor, including the definitions
	// extracted from it, in bytes.
	TextMemory = 192

	// TokenMemory is for each token of a script inside a string.
	TokenMemory = 32
)

// A Budget limits the work and memory for extracting from one script.
type Budget struct {
	// Tokens counts the tokens of the script and of the scripts in its strings.
	Tokens int
	// size is the size of the script in bytes.
	size int
	// steps, scanned, parsed and memory are the amounts used so far.
	steps int
	// scanned is the number of tokens that were searched.
	scanned int
	// parsed counts the parts of expressions that were parsed.
	parsed int
	// memory estimates the memory of values and definitions in bytes.
	memory int
	// Short describes the first limit that was reached. It is nil before.
	Short *shortage
}

// A shortage is the token at which a limit was reached, and the reason.
type shortage struct {
	// At is the token at which the limit was exceeded.
	At int32
	// Reason names the exceeded limit, for the user.
	Reason string
}

// runShort records the first exceeded limit.
func (b *Budget) runShort(at int32, reason string) {
	if b.Short == nil {
		b.Short = &shortage{at, reason}
	}
}

// Step counts a step at a token. It reports whether the step may be taken.
func (s *Script) Step(at int32) bool {
	most := minSteps + stepsPerToken*s.Tokens
	if s.steps++; s.steps > most {
		s.runShort(at, fmt.Sprintf("resolving the script's names needs more than %d steps", most))
	}
	return s.Short == nil && !s.isCanceled()
}

// ClaimMemory counts memory for a value of the expression at a token. It reports whether the value may be
// created.
func (s *Script) ClaimMemory(at int32, bytes int) bool {
	most := minMemory + memoryPerToken*s.Tokens + memoryPerByte*s.size
	if s.memory += min(bytes, most); s.memory > most {
		// The sum stays at the limit, so that it cannot overflow.
		s.memory = most + 1
		s.runShort(at, fmt.Sprintf("its values take more than %d MiB", most>>20))
		return false
	}
	return true
}

// compose appends a part to the string that the expression at a token composes. It reports whether the string
// may become that long.
func (s *Script) compose(b *strings.Builder, at int32, part string) bool {
	if b.Len()+len(part) > minString+s.size {
		s.runShort(at, "the script builds a string that is longer than the script")
		return false
	}
	if !s.ClaimMemory(at, len(part)) {
		return false
	}
	b.WriteString(part)
	return true
}

// mayParse counts a part of an expression at a token. It reports whether it may be parsed.
func (s *Script) mayParse(at int32) bool {
	most := minParsed + parsedPerToken*s.Tokens
	if s.parsed++; s.parsed > most {
		s.runShort(at, fmt.Sprintf("the script has more than %d parts of expressions", most))
		return false
	}
	return !s.isCanceled()
}

// MayScan reports whether the content of a bracket may be searched once more.
func (s *Script) MayScan(br int32) bool {
	b := s.Brackets[br]
	return s.MayScanSpan(b.Open, b.Close)
}

// MayScanSpan reports whether the budget allows searching the tokens from one position to another.
func (s *Script) MayScanSpan(from, to int32) bool {
	if s.scanned += int(max(to-from, 0)); s.scanned > maxScanned {
		s.runShort(from, fmt.Sprintf("the script has more than %d tokens to search", maxScanned))
		return false
	}
	return !s.isCanceled()
}
