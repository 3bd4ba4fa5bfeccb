package bundle

import (
	"fmt"
	"strings"
)

// Bounds of what reading one script may cost. All that is read of a script
// after one of them is used up is what stands in its text as it is: names are
// no longer followed, and nothing is put together.
const (
	// names and expressions that are followed, and brackets that are climbed
	minSteps = 20 << 20

	// and so many more for each token
	stepsPerToken = 8

	// tokens that are looked through for single fields
	maxScanned = 1 << 30

	// bytes that definitions and composed values take
	minMemory = 32 << 20

	// and so many more for each token
	memoryPerToken = 1 << 10

	// and for each byte of the script
	memoryPerByte = 256

	// bytes of a composed string, and as many more as the script has
	minString = 1 << 16

	// parts of expressions that are parsed
	minParsed = 1 << 18

	// and so many more for each token
	parsedPerToken = 16
)

// What values and definitions are estimated to take, in bytes. A small literal
// that is spread into many lists, or handed to many messages, is charged for
// what is made of it each time.
const (
	// of a composed string, and its bytes
	partMemory = 16

	// of a list: a field, a value of an enum or a method is made of it
	elementMemory = 2048

	// of an object that was put together
	propertyMemory = 128

	// a message, an enum or a service
	definitionMemory = 4096

	// a byte of a descriptor, of what it declares
	textMemory = 192

	// a token of a script in a string
	tokenMemory = 32
)

// A budget is what reading a script has cost so far.
type budget struct {
	tokens  int // of the script, and of those in its strings
	size    int // of the script, in bytes
	steps   int
	scanned int
	parsed  int
	memory  int
	short   *shortage // of the first of them that was used up
}

// A shortage is where a budget was used up.
type shortage struct {
	at     int32
	reason string
}

func (b *budget) runShort(at int32, reason string) {
	if b.short == nil {
		b.short = &shortage{at, reason}
	}
}

// step counts a step at a token, and reports whether the next may be taken.
func (s *script) step(at int32) bool {
	most := minSteps + stepsPerToken*s.tokens
	if s.steps++; s.steps > most {
		s.runShort(at, fmt.Sprintf("more than %d steps are needed to follow its names", most))
	}
	return s.short == nil && !s.isCanceled()
}

// claimMemory counts memory that something made of the expression at a token takes,
// and reports whether it may be made.
func (s *script) claimMemory(at int32, bytes int) bool {
	most := minMemory + memoryPerToken*s.tokens + memoryPerByte*s.size
	if s.memory += min(bytes, most); s.memory > most {
		s.memory = most + 1
		s.runShort(at, fmt.Sprintf("its values take more than %d MiB", most>>20))
		return false
	}
	return true
}

// compose appends a part to the string that the expression at a token makes, and
// reports whether it may be that long.
func (s *script) compose(b *strings.Builder, at int32, part string) bool {
	if b.Len()+len(part) > minString+s.size {
		s.runShort(at, "it makes a string that is longer than the script")
		return false
	}
	if !s.claimMemory(at, len(part)) {
		return false
	}
	b.WriteString(part)
	return true
}

// mayParse counts an expression at a token, and reports whether it may be parsed.
func (s *script) mayParse(at int32) bool {
	most := minParsed + parsedPerToken*s.tokens
	if s.parsed++; s.parsed > most {
		s.runShort(at, fmt.Sprintf("more than %d parts of expressions are parsed", most))
		return false
	}
	return !s.isCanceled()
}

// mayScan reports whether a bracket may be looked through once more.
func (s *script) mayScan(br int32) bool {
	b := s.brs[br]
	return s.mayScanSpan(b.open, b.close)
}

// mayScanSpan is mayScan for the tokens from one to another.
func (s *script) mayScanSpan(from, to int32) bool {
	if s.scanned += int(max(to-from, 0)); s.scanned > maxScanned {
		s.runShort(from, fmt.Sprintf("more than %d tokens have to be looked through", maxScanned))
		return false
	}
	return !s.isCanceled()
}

// reportShortage lists where a budget was used up among what is unresolved.
func (x *scan) reportShortage() {
	if x.short != nil {
		x.unresolved("", x.short.at, x.short.reason+"; what the script makes from here on is not resolved")
	}
}
