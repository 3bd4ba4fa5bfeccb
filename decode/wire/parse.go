package wire

const (
	// maxNumber is the highest field number of protobuf.
	maxNumber = 1<<29 - 1

	// defaultDepth is the default of Options.MaxDepth, as in protobuf's own parsers.
	defaultDepth = 100

	// defaultNodes is the default of Options.MaxNodes.
	defaultNodes = 4_000_000

	// noGroup is the value of the parameter group of parser.fields for fields outside groups. No field number has
	// so many bits.
	noGroup = ^uint64(0)
)

// Parse parses data into a tree whose offsets refer to data. It never fails: bytes that are not protobuf become
// Garbage nodes.
//
// Limits: each byte is read at most once per level of nesting, so the time is at most proportional to len(data)
// times MaxDepth. For real messages it is proportional to len(data).
func Parse(data []byte, o Options) *Tree {
	t := new(Tree)
	t.Reset(data, o)
	return t
}

// Reset parses data into t and reuses the memory of t's nodes, which become invalid.
func (t *Tree) Reset(data []byte, o Options) {
	p := parser{data: data, nodes: t.Nodes[:0], maxDepth: o.MaxDepth, maxNodes: o.MaxNodes}
	if p.maxDepth <= 0 {
		p.maxDepth = defaultDepth
	}
	if p.maxNodes <= 0 {
		p.maxNodes = defaultNodes
	}
	if p.nodes == nil {
		// A node has at least a byte, except for the root.
		p.nodes = make([]Node, 0, min(len(data)+1, len(data)/32+8, 1<<12))
	}
	// The root has no tag: all of data is its value.
	p.addNode(Node{Type: Message, End: len(data), Parent: None, First: None, Next: None})
	p.fields(0, len(data), 0, 0, noGroup, false)
	t.Data, t.Nodes, t.Faults = data, p.nodes, p.faults
}

// A parser builds the nodes of one tree. Its methods append to nodes, so pointers into that slice are
// short-lived.
type parser struct {
	// data is the whole input of the parser.
	data []byte

	// nodes are the nodes of the tree built so far.
	nodes []Node
	// faults are the errors of the nodes; see Node.fault. They are in errs, a block that more errors may follow, since a
	// damaged message may have a million.
	faults []error
	errs   []Error

	// maxDepth and maxNodes are the limits of Options, with defaults applied.
	maxDepth, maxNodes int

	// full means that a strict parse ended because maxNodes was reached, not because of its bytes.
	full bool
}

// addNode appends the node n, and returns its index.
func (p *parser) addNode(n Node) int32 {
	if len(p.nodes) == cap(p.nodes) {
		p.enlarge()
	}
	p.nodes = append(p.nodes, n)
	return int32(len(p.nodes) - 1)
}

// enlarge makes room for further nodes: for as many as the data will have if the rest of it is like the part that was
// parsed, within bounds. Growing in small steps would copy the nodes of a large message many times.
func (p *parser) enlarge() {
	have := len(p.nodes)
	if have == 0 {
		return
	}
	expected := have * len(p.data) / max(p.nodes[have-1].End, 1)
	room := min(max(expected+expected/16-have, have/2), 15*have) + 1
	// Unlike slices.Grow, make leaves new memory untouched, so that the part of it that stays unused costs nothing.
	nodes := make([]Node, have, have+room)
	copy(nodes, p.nodes)
	p.nodes = nodes
}

// growNodes adds a node and returns its index. The caller must set every field of the node: it may contain the
// values of an earlier one, because clearing it would cost time.
func (p *parser) growNodes() (i int32) {
	i = int32(len(p.nodes))
	if len(p.nodes) == cap(p.nodes) {
		p.enlarge()
	}
	if len(p.nodes) < cap(p.nodes) {
		p.nodes = p.nodes[:i+1]
	} else {
		p.nodes = append(p.nodes, Node{})
	}
	return i
}

// fields parses the bytes from pos to end as children of parent, which is depth levels below the root. Within a
// group it stops at the end tag with that group's number. Outside of groups, group is noGroup.
//
// A Len payload is parsed strictly (strict is true), because it may be something other than a message: the first
// violation ends the parse with ok false, and the caller removes the nodes. Elsewhere, violations become Garbage
// nodes and ok is true. next is the offset where parsing ended, and closed reports whether the group's end tag was
// found.
//
// Parsing spends most of its time in this loop, so tags, varints and lengths of one byte are read inline.
func (p *parser) fields(pos, end int, parent int32, depth int, group uint64, strict bool) (next int, closed, ok bool) {
	data, prev := p.data, None
	for pos < end {
		if len(p.nodes) >= p.maxNodes {
			return p.giveUp(pos, end, parent, prev, strict, tooMany)
		}
		// The tag.
		off, overlong := pos, false
		tag := uint64(data[pos])
		pos++
		if tag >= 0x80 {
			var n int
			if tag, n = consumeVarint(data, off, end); n <= 0 {
				return p.giveUp(off, end, parent, prev, strict, badTag(n))
			}
			pos = off + n
			overlong = data[pos-1] == 0
		}
		number, typ := tag>>3, Type(tag&7)
		if strict && isMalformed(number, typ) {
			return off, false, false
		}
		if isEnd(typ, number, group) {
			p.markOverlong(parent, overlong)
			return pos, true, true
		}

		// The value. Nearly all varints and lengths have one byte.
		at, val, bad := pos, pos, Reason(0)
		switch {
		case typ == Varint && isShort(data, pos, end):
			pos++
		case typ == Len && isShortLen(data, pos, end):
			val = pos + 1
			pos = val + int(data[pos])
		default:
			if val, pos, overlong, bad = p.value(typ, pos, end, overlong); bad != 0 {
				if strict {
					return off, false, false
				}
				// Skip as much of a malformed field as can be delimited, and continue behind it.
				prev, pos = p.malformed(bad, tag, off, at, end, parent, prev)
				continue
			}
		}

		// The node, then whatever is inside it.
		i := p.growNodes()
		p.nodes[i].set(number, off, at, val, pos, parent, typ, overlong)
		p.link(parent, prev, i)
		prev = i
		if typ == Len {
			p.payload(i, val, pos, depth+1)
		} else if typ == StartGroup {
			if pos, ok = p.group(i, end, depth+1, strict); !ok {
				return pos, false, false
			}
		}
		if !strict {
			p.checkNumber(i, number, off, end)
		}
	}
	return pos, false, !strict || group == noGroup
}

// isShort reports whether the varint at pos is one byte long.
func isShort(data []byte, pos, end int) bool { return pos < end && data[pos] < 0x80 }

// isShortLen reports whether the length at pos is one byte long and its payload ends before end.
func isShortLen(data []byte, pos, end int) bool {
	return pos < end && data[pos] < 0x80 && int(data[pos]) <= end-pos-1
}

// set sets the properties of n, a field without children; the parameters have the names of Node's fields.
func (n *Node) set(number uint64, off, tag, val, end int, parent int32, typ Type, overlong bool) {
	n.Number, n.Off, n.TagEnd, n.Val, n.End = number, off, tag, val, end
	n.Parent, n.First, n.Next = parent, None, None
	n.Type, n.Overlong, n.fault = typ, overlong, 0
}

// value parses the length and the value of a field whose tag ends at pos. overlong reports whether the tag
// (longTag), the length or the value has more bytes than necessary. bad is the reason why the field is malformed,
// or 0.
func (p *parser) value(typ Type, pos, end int, longTag bool) (val, next int, overlong bool, bad Reason) {
	// The last result is the code of the error; 0 means that the value is valid.
	switch typ {
	case Varint:
		_, n := consumeVarint(p.data, pos, end)
		switch {
		case n > 0:
			return pos, pos + n, longTag || p.data[pos+n-1] == 0, 0
		case n == varintLong:
			return pos, pos, false, valueTooLong
		}
		return pos, pos, false, valueTruncated
	case I64, I32:
		// A field must not reach beyond its parent, even if the bytes exist.
		if next = pos + typ.FixedLen(); next > end {
			return pos, pos, false, valueTruncated
		}
		return pos, next, longTag, 0
	case Len:
		v, n := consumeVarint(p.data, pos, end)
		switch {
		case n > 0 && v <= uint64(end-pos-n):
			// A zero in the last byte adds nothing to a varint, so the length is overlong.
			return pos + n, pos + n + int(v), longTag || n > 1 && p.data[pos+n-1] == 0, 0
		case n == varintTruncated:
			return pos, pos, false, lengthTruncated
		}
		return pos, pos, false, LengthRange
	case StartGroup:
		return pos, pos, longTag, 0
	case EndGroup:
		return pos, pos, false, strayEnd
	}

	return pos, pos, false, badType
}

// errorDetails returns Error.Found and Error.Left for a malformed value of type typ at pos.
func (p *parser) errorDetails(bad Reason, typ Type, pos, end int) (found uint64, left int) {
	left = end - pos
	switch bad {
	case badType:
		return uint64(typ), left
	case valueTooLong:
		return uint64(left) + 1, left
	case valueTruncated:
		if width := typ.FixedLen(); width > 0 {
			return uint64(width), left
		}
		return uint64(left) + 1, left
	case LengthRange:
		// The length itself is sound, but larger than the payload.
		if v, n := consumeVarint(p.data, pos, end); n > 0 {
			return v, left - n
		}
		return ^uint64(0), left
	}
	return 0, left
}

// giveUp ends parsing at off because of reason: the bytes up to end become a Garbage node after prev, or a strict
// parse fails. The results are those of fields.
func (p *parser) giveUp(off, end int, parent, prev int32, strict bool, reason Reason) (next int, closed, ok bool) {
	found := uint64(0)
	if reason == tooMany {
		found = uint64(p.maxNodes)
		p.full = p.full || strict
	}
	if strict {
		return off, false, false
	}
	p.link(parent, prev, p.garbage(off, end, parent, Error{Reason: reason, Off: off, Found: found, Left: end - off}))
	return end, false, true
}

// badTag returns the reason why a tag is malformed; n is the result of consumeVarint, at most 0.
func badTag(n int) Reason {
	if n == varintLong {
		return tagTooLong
	}
	return tagTruncated
}

// malformed adds a Garbage node, after node prev of parent, for the malformed field that begins at off and whose
// tag ends at pos. It returns the node's index and the offset where parsing continues.
func (p *parser) malformed(bad Reason, tag uint64, off, pos, end int, parent, prev int32) (i int32, next int) {
	found, left := p.errorDetails(bad, Type(tag&7), pos, end)
	next = p.malformedEnd(bad, pos, end)
	i = p.garbage(off, next, parent, Error{Reason: bad, Off: off, Number: tag >> 3, Found: found, Left: left})
	p.link(parent, prev, i)
	return i, next
}

// checkNumber records an error in node i if its field number is outside protobuf's range and the node has no other
// error.
func (p *parser) checkNumber(i int32, number uint64, off, end int) {
	if number-1 >= maxNumber && p.nodes[i].Sound() {
		p.nodes[i].fault = p.addFault(Error{Reason: numberRange, Off: off, Number: number, Found: number, Left: end - off})
	}
}

// isMalformed reports whether protobuf does not allow the field number or the wire type.
func isMalformed(number uint64, typ Type) bool { return number-1 >= maxNumber || typ > I32 }

// isEnd reports whether a tag is the end tag of the group with number group.
func isEnd(typ Type, number, group uint64) bool { return typ == EndGroup && number == group }

// markOverlong sets Overlong of node i if overlong is true.
func (p *parser) markOverlong(i int32, overlong bool) {
	if overlong {
		p.nodes[i].Overlong = true
	}
}

// payload parses the payload [lo,hi) of Len node i as a message. If that fails, the node gets no children. No byte
// is read twice at one level of nesting because of a failure.
func (p *parser) payload(i int32, lo, hi, depth int) {
	if lo == hi {
		return
	}
	if depth > p.maxDepth {
		p.nodes[i].fault = overNested
		return
	}
	mark := len(p.nodes)
	if _, _, ok := p.fields(lo, hi, i, depth, noGroup, true); ok {
		return
	}
	p.nodes = p.nodes[:mark]
	p.nodes[i].First = None
	if p.full {
		p.full = false
		p.nodes[i].fault = overfull
	}
}

// group parses the fields and the end tag of group node i, which is depth levels below the root. strict and the
// results are as in fields.
func (p *parser) group(i int32, end, depth int, strict bool) (next int, ok bool) {
	n := &p.nodes[i]
	number, off := n.Number, n.Off
	if depth > p.maxDepth {
		// In a strict parse the payload is not a message. Otherwise the group and all behind it is garbage.
		if strict {
			return off, false
		}
		n.Type, n.TagEnd, n.Val, n.End, n.Overlong = Garbage, off, off, end, false
		n.fault = p.addFault(Error{Reason: tooDeep, Off: off, Number: number, Found: uint64(p.maxDepth), Left: end - off})
		n.Number = 0
		return end, true
	}
	next, closed, ok := p.fields(n.Val, end, i, depth, number, strict)
	// Appending nodes may have moved the array.
	n = &p.nodes[i]
	n.End = next
	if !closed && !strict {
		n.fault = p.addFault(Error{Reason: groupOpen, Off: off, Number: number, Left: end - off})
	}
	return next, ok
}

// malformedEnd returns the end of a malformed field. at is the beginning of the field's value. If its
// end cannot be found, the field extends to end.
func (p *parser) malformedEnd(bad Reason, at, end int) int {
	switch bad {
	case strayEnd:
		return at
	case valueTooLong:
		for ; at < end; at++ {
			if p.data[at] < 0x80 {
				return at + 1
			}
		}
	}
	return end
}

// garbage adds a Garbage node for the bytes [off,end), which cannot be decoded.
func (p *parser) garbage(off, end int, parent int32, err Error) int32 {
	return p.addNode(Node{Type: Garbage, Off: off, TagEnd: off, Val: off, End: end, Parent: parent, First: None, Next: None, fault: p.addFault(err)})
}

// maxBlock is the maximum number of errors in a block.
const maxBlock = 512

// addFault adds an error of a node, and returns what the node's fault has to be.
func (p *parser) addFault(err Error) int32 {
	if len(p.errs) == cap(p.errs) {
		p.errs = make([]Error, 0, min(max(2*cap(p.errs), 1), maxBlock))
	}
	p.errs = append(p.errs, err)
	p.faults = append(p.faults, &p.errs[len(p.errs)-1])
	return int32(len(p.faults))
}

// link makes node i the next sibling of prev, or the first child of parent if prev is None.
func (p *parser) link(parent, prev, i int32) {
	if prev == None {
		p.nodes[parent].First = i
	} else {
		p.nodes[prev].Next = i
	}
}
