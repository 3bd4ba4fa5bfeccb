package jstree

import (
	"fmt"
	"strings"
)

// Limits of the work for one script, which may be hostile. After a limit is reached, only literals are read:
// names are no longer resolved, and no values are composed.
const (
	// minSteps is how many steps of resolving names and climbing brackets are allowed, in addition to
	// stepsPerToken.
	minSteps = 20 << 20

	// stepsPerToken is how many further steps are allowed for each token of the script.
	stepsPerToken = 8

	// maxScanned is how many tokens may be searched in total; tokens searched again are counted again.
	maxScanned = 1 << 30

	// minMemory is how much estimated memory in bytes definitions and composed values may use, in addition to
	// memoryPerToken and memoryPerByte.
	minMemory = 32 << 20

	// memoryPerToken is the memory in bytes allowed for each token of the script.
	memoryPerToken = 1 << 10

	// memoryPerByte is the memory in bytes allowed for each byte of the script.
	memoryPerByte = 256

	// minString is the maximum size in bytes of a composed string, in addition to the size of the script.
	minString = 1 << 16

	// minParsed is how many subexpressions may be parsed, in addition to parsedPerToken.
	minParsed = 1 << 18

	// parsedPerToken is how many further subexpressions may be parsed for each token of the script.
	parsedPerToken = 16
)

// Estimates of memory in bytes for values and definitions. A small literal that is copied into many lists or
// messages is counted each time.
const (
	// partMemory is the estimate for a part of a composed string, in addition to its bytes.
	partMemory = 16

	// elementMemory is the estimate for an element of a list, which becomes a field, an enum value or a method.
	elementMemory = 2048

	// PropertyMemory is the estimate for a property of a composed object.
	PropertyMemory = 128

	// DefinitionMemory is the estimate for a message, an enum or a service.
	DefinitionMemory = 4096

	// TextMemory is the estimate for each byte of an embedded descriptor, including the definitions extracted
	// from it.
	TextMemory = 192

	// TokenMemory is the estimate for each token of a script inside a string literal.
	TokenMemory = 32
)

// A Budget counts the work and memory used for extracting from one script, and records whether a limit was
// exceeded.
type Budget struct {
	// Tokens is the number of tokens in the script and in scripts inside its string literals. The limits grow
	// with it.
	Tokens int
	// size is the size of the script in bytes.
	size int
	// steps is the number of steps of resolving names so far.
	steps int
	// scanned is the number of tokens searched so far.
	scanned int
	// parsed is the number of subexpressions parsed so far.
	parsed int
	// memory is the estimated memory used so far, in bytes.
	memory int
	// Short describes the first limit that was exceeded. It is nil as long as none is.
	Short *shortage
}

// A shortage records which limit was exceeded, and where.
type shortage struct {
	// At is the index of the token where the limit was exceeded.
	At int32
	// Reason describes the limit for the user.
	Reason string
}

// runShort records that a limit was exceeded at the token with index at. Only the first call has an effect.
func (b *Budget) runShort(at int32, reason string) {
	if b.Short == nil {
		b.Short = &shortage{at, reason}
	}
}

// Step counts one step of resolving a name at the token with index at. It reports whether the step is within
// the limits.
func (s *Script) Step(at int32) bool {
	most := minSteps + stepsPerToken*s.Tokens
	if s.steps++; s.steps > most {
		s.runShort(at, fmt.Sprintf("resolving the script's names needs more than %d steps", most))
	}
	return s.Short == nil && !s.isCanceled()
}

// ClaimMemory counts memory (in bytes) for a value or definition created at the token with index at. It reports
// whether that is within the limit.
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

// compose appends part to the string that the expression at the token with index at composes. It reports
// whether that is within the limits; if not, nothing is appended.
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

// mayParse counts one subexpression at the token with index at. It reports whether it may be parsed.
func (s *Script) mayParse(at int32) bool {
	most := minParsed + parsedPerToken*s.Tokens
	if s.parsed++; s.parsed > most {
		s.runShort(at, fmt.Sprintf("the script has more than %d parts of expressions", most))
		return false
	}
	return !s.isCanceled()
}

// MayScan counts a search of all tokens in the bracket br. It reports whether that is within the limit.
func (s *Script) MayScan(br int32) bool {
	b := s.Brackets[br]
	return s.MayScanSpan(b.Open, b.Close)
}

// MayScanSpan counts a search of the tokens from index from up to index to. It reports whether that is within
// the limit.
func (s *Script) MayScanSpan(from, to int32) bool {
	if s.scanned += int(max(to-from, 0)); s.scanned > maxScanned {
		s.runShort(from, fmt.Sprintf("the script has more than %d tokens to search", maxScanned))
		return false
	}
	return !s.isCanceled()
}
