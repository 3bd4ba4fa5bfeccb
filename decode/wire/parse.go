package wire

const (
	maxNumber    = 1<<29 - 1
	defaultDepth = 100
	defaultNodes = 4_000_000
	noGroup      = ^uint64(0) // no field number has so many bits
)

// Parse parses data into a tree that points into it. It never fails: what is
// not protobuf is a Garbage node with the reason in its Err.
//
// Limits: a byte is looked at once for every level of nesting it can be read
// at, so the time is at most proportional to len(data) times MaxDepth, and for
// real messages to len(data).
func Parse(data []byte, o Options) *Tree {
	t := new(Tree)
	t.Reset(data, o)
	return t
}

// Reset parses data into t, reusing its nodes' memory.
func (t *Tree) Reset(data []byte, o Options) {
	p := parser{data: data, nodes: t.Nodes[:0], maxDepth: o.MaxDepth, maxNodes: o.MaxNodes}
	if p.maxDepth <= 0 {
		p.maxDepth = defaultDepth
	}
	if p.maxNodes <= 0 {
		p.maxNodes = defaultNodes
	}
	if p.nodes == nil {
		p.nodes = make([]Node, 0, min(len(data)/32+8, 1<<12))
	}
	p.addNode(Node{Type: Message, End: len(data), Parent: None, First: None, Next: None})
	p.fields(0, len(data), 0, 0, noGroup, false)
	t.Data, t.Nodes = data, p.nodes
}

type parser struct {
	data               []byte
	nodes              []Node
	maxDepth, maxNodes int

	// full reports that a strict parse was given up for want of nodes.
	full bool
}

func (p *parser) addNode(n Node) int32 {
	p.nodes = append(p.nodes, n)
	return int32(len(p.nodes) - 1)
}

// grow adds a node whose memory may hold another one's fields.
func (p *parser) grow() (i int32) {
	i = int32(len(p.nodes))
	if len(p.nodes) < cap(p.nodes) {
		p.nodes = p.nodes[:i+1]
	} else {
		p.nodes = append(p.nodes, Node{})
	}
	return i
}

// fields reads fields from pos until end, or until the end tag of group, as
// children of parent, which is depth levels below the root.
//
// In a strict parse the first irregularity ends it with ok false; the caller
// takes the nodes back. Otherwise irregularities become nodes and ok is true.
// next is where it stopped, and closed whether it met group's end tag.
//
// This is the loop that parsing spends its time in: tags, varints and lengths of
// one byte are read here, all others by functions.
func (p *parser) fields(pos, end int, parent int32, depth int, group uint64, strict bool) (next int, closed, ok bool) {
	data, prev := p.data, None
	for pos < end {
		if len(p.nodes) >= p.maxNodes {
			return p.giveUp(pos, end, parent, prev, strict, tooMany)
		}
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
				prev, pos = p.malformed(bad, tag, off, at, end, parent, prev)
				continue
			}
		}

		i := p.grow()
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

// isShort reports a varint of one byte at pos.
func isShort(data []byte, pos, end int) bool { return pos < end && data[pos] < 0x80 }

// isShortLen reports a length of one byte at pos with all of its payload.
func isShortLen(data []byte, pos, end int) bool {
	return pos < end && data[pos] < 0x80 && int(data[pos]) <= end-pos-1
}

// set makes n a field without children. It does not write Err where nothing is in it:
// that costs a write barrier.
func (n *Node) set(number uint64, off, tag, val, end int, parent int32, typ Type, overlong bool) {
	n.Number, n.Off, n.Tag, n.Val, n.End = number, off, tag, val, end
	n.Parent, n.First, n.Next = parent, None, None
	n.Type, n.Overlong = typ, overlong
	if n.Err != nil {
		n.Err = nil
	}
}

// value reads the length and the value of a field whose tag ends at pos; overlong is
// that of these and the tag together, and bad is why it is malformed, or 0.
func (p *parser) value(typ Type, pos, end int, longTag bool) (val, next int, overlong bool, bad Reason) {
	switch typ {
	case Varint:
		_, n := consumeVarint(p.data, pos, end)
		switch {
		case n > 0:
			return pos, pos + n, longTag || p.data[pos+n-1] == 0, 0
		case n == varintLong:
			return pos, pos, false, valueTooLong
		}
		return pos, pos, false, valueCut
	case I64, I32:
		if next = pos + typ.FixedLen(); next > end {
			return pos, pos, false, valueCut
		}
		return pos, next, longTag, 0
	case Len:
		v, n := consumeVarint(p.data, pos, end)
		switch {
		case n > 0 && v <= uint64(end-pos-n):
			return pos + n, pos + n + int(v), longTag || n > 1 && p.data[pos+n-1] == 0, 0
		case n == varintCut:
			return pos, pos, false, lengthCut
		}
		return pos, pos, false, LengthRange
	case StartGroup:
		return pos, pos, longTag, 0
	case EndGroup:
		return pos, pos, false, strayEnd
	}
	return pos, pos, false, badType
}

// found is what an Error says of a malformed value of type typ that begins at pos, and
// how many bytes it had.
func (p *parser) found(bad Reason, typ Type, pos, end int) (found uint64, left int) {
	left = end - pos
	switch bad {
	case badType:
		return uint64(typ), left
	case valueTooLong:
		return uint64(left) + 1, left
	case valueCut:
		if width := typ.FixedLen(); width > 0 {
			return uint64(width), left
		}
		return uint64(left) + 1, left
	case LengthRange:
		if v, n := consumeVarint(p.data, pos, end); n > 0 {
			return v, left - n
		}
		return ^uint64(0), left
	}
	return 0, left
}

// giveUp makes what is left garbage, or ends a strict parse.
func (p *parser) giveUp(off, end int, parent, prev int32, strict bool, reason Reason) (next int, closed, ok bool) {
	found := uint64(0)
	if reason == tooMany {
		found = uint64(p.maxNodes)
		p.full = p.full || strict
	}
	if strict {
		return off, false, false
	}
	p.link(parent, prev, p.garbage(off, end, parent, &Error{Reason: reason, Off: off, Found: found, Left: end - off}))
	return end, false, true
}

// badTag is the reason for a tag that consumeVarint returned n for.
func badTag(n int) Reason {
	if n == varintLong {
		return tagTooLong
	}
	return tagCut
}

// malformed makes garbage of the field from off on, whose tag ends at pos, as far as
// it goes. It returns that node, and where parsing goes on.
func (p *parser) malformed(bad Reason, tag uint64, off, pos, end int, parent, prev int32) (i int32, next int) {
	found, left := p.found(bad, Type(tag&7), pos, end)
	next = p.extent(bad, pos, end)
	i = p.garbage(off, next, parent, &Error{Reason: bad, Off: off, Number: tag >> 3, Found: found, Left: left})
	p.link(parent, prev, i)
	return i, next
}

// checkNumber marks node i if protobuf does not have its field number, unless something
// else is wrong with it.
func (p *parser) checkNumber(i int32, number uint64, off, end int) {
	if number-1 >= maxNumber && p.nodes[i].Err == nil {
		p.nodes[i].Err = &Error{Reason: numberRange, Off: off, Number: number, Found: number, Left: end - off}
	}
}

// isMalformed reports a tag that protobuf does not have.
func isMalformed(number uint64, typ Type) bool { return number-1 >= maxNumber || typ > I32 }

// isEnd reports the end tag of group.
func isEnd(typ Type, number, group uint64) bool { return typ == EndGroup && number == group }

func (p *parser) markOverlong(i int32, overlong bool) {
	if overlong {
		p.nodes[i].Overlong = true
	}
}

// payload tries the payload of Len node i as a message and takes the nodes
// back if it is none. Failing costs no second look at any byte at this level.
func (p *parser) payload(i int32, lo, hi, depth int) {
	if lo == hi {
		return
	}
	if depth > p.maxDepth {
		p.nodes[i].Err = ErrDepth
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
		p.nodes[i].Err = errNodes
	}
}

// group reads the fields and the end tag of group node i.
func (p *parser) group(i int32, end, depth int, strict bool) (next int, ok bool) {
	n := &p.nodes[i]
	number, off := n.Number, n.Off
	if depth > p.maxDepth {
		if strict {
			return off, false
		}
		n.Type, n.Tag, n.Val, n.End, n.Overlong = Garbage, off, off, end, false
		n.Err = &Error{Reason: tooDeep, Off: off, Number: number, Found: uint64(p.maxDepth), Left: end - off}
		n.Number = 0
		return end, true
	}
	next, closed, ok := p.fields(n.Val, end, i, depth, number, strict)
	n = &p.nodes[i] // the arena may have moved
	n.End = next
	if !closed && !strict {
		n.Err = &Error{Reason: groupOpen, Off: off, Number: number, Left: end - off}
	}
	return next, ok
}

// extent is where a malformed field that begins before at ends: where that can
// be told, parsing goes on behind it, else the rest is garbage.
func (p *parser) extent(bad Reason, at, end int) int {
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

func (p *parser) garbage(off, end int, parent int32, err error) int32 {
	return p.addNode(Node{Type: Garbage, Off: off, Tag: off, Val: off, End: end, Parent: parent, First: None, Next: None, Err: err})
}

// link makes i the child of parent that follows prev.
func (p *parser) link(parent, prev, i int32) {
	if prev == None {
		p.nodes[parent].First = i
	} else {
		p.nodes[prev].Next = i
	}
}
