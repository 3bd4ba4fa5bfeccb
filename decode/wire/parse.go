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
	p.add(Node{Type: Message, End: len(data), Parent: None, First: None, Next: None})
	p.fields(0, len(data), 0, 0, noGroup, false)
	t.Data, t.Nodes = data, p.nodes
}

type parser struct {
	data               []byte
	nodes              []Node
	maxDepth, maxNodes int
	full               bool // a strict parse was given up for want of nodes
}

func (p *parser) add(n Node) int32 {
	p.nodes = append(p.nodes, n)
	return int32(len(p.nodes) - 1)
}

// fields reads fields from pos until end, or until the end tag of group, as
// children of parent, which is depth levels below the root.
//
// In a strict parse the first irregularity ends it with ok false; the caller
// takes the nodes back. Otherwise irregularities become nodes and ok is true.
// next is where it stopped, and closed whether it met group's end tag.
func (p *parser) fields(pos, end int, parent int32, depth int, group uint64, strict bool) (next int, closed, ok bool) {
	data := p.data
	prev := None
	for pos < end {
		if len(p.nodes) >= p.maxNodes {
			if strict {
				p.full = true
				return pos, false, false
			}
			p.link(parent, prev, p.garbage(pos, end, parent, &Error{Reason: TooMany, Off: pos, Found: uint64(p.maxNodes), Left: end - pos}))
			return end, false, true
		}
		off := pos
		overlong := false
		var tag uint64
		if c := data[pos]; c < 0x80 {
			tag = uint64(c)
			pos++
		} else {
			v, n := consumeVarint(data, pos, end)
			if n <= 0 {
				if strict {
					return off, false, false
				}
				reason := TagCut
				if n < 0 {
					reason = TagTooLong
				}
				p.link(parent, prev, p.garbage(off, end, parent, &Error{Reason: reason, Off: off, Left: end - off}))
				return end, false, true
			}
			tag = v
			pos += n
			overlong = data[pos-1] == 0
		}
		number, typ := tag>>3, Type(tag&7)
		if strict && (number-1 >= maxNumber || typ > I32) {
			return off, false, false
		}
		if typ == EndGroup && number == group {
			if overlong {
				p.nodes[parent].Overlong = true
			}
			return pos, true, true
		}

		at := pos // end of the tag
		val := pos
		var bad Reason
		var found uint64
		failed := false
		switch typ {
		case Varint:
			if pos < end && data[pos] < 0x80 {
				pos++
				break
			}
			_, n := consumeVarint(data, pos, end)
			if n > 0 {
				pos += n
				overlong = overlong || data[pos-1] == 0
				break
			}
			bad, found, failed = ValueCut, uint64(end-pos)+1, true
			if n < 0 {
				bad = ValueTooLong
			}
		case I64:
			if end-pos >= 8 {
				pos += 8
			} else {
				bad, found, failed = ValueCut, 8, true
			}
		case I32:
			if end-pos >= 4 {
				pos += 4
			} else {
				bad, found, failed = ValueCut, 4, true
			}
		case Len:
			if pos < end && data[pos] < 0x80 && int(data[pos]) <= end-pos-1 {
				val = pos + 1
				pos = val + int(data[pos])
				break
			}
			v, n := consumeVarint(data, pos, end)
			switch {
			case n > 0 && v <= uint64(end-pos-n):
				val = pos + n
				overlong = overlong || n > 1 && data[val-1] == 0
				pos = val + int(v)
			case n == varintCut:
				bad, failed = LengthCut, true
			case n == varintLong:
				bad, found, failed = LengthRange, ^uint64(0), true
			default:
				bad, found, failed = LengthRange, v, true
				val = pos + n
			}
		case StartGroup:
		case EndGroup:
			bad, failed = StrayEnd, true
		default:
			bad, found, failed = BadType, uint64(typ), true
		}
		if failed {
			if strict {
				return off, false, false
			}
			stop := p.extent(bad, at, end)
			left := end - val
			i := p.garbage(off, stop, parent, &Error{Reason: bad, Off: off, Number: number, Found: found, Left: left})
			p.link(parent, prev, i)
			prev, pos = i, stop
			continue
		}

		i := int32(len(p.nodes))
		if len(p.nodes) < cap(p.nodes) {
			p.nodes = p.nodes[:i+1]
		} else {
			p.nodes = append(p.nodes, Node{})
		}
		n := &p.nodes[i]
		n.Number, n.Off, n.Tag, n.Val, n.End = number, off, at, val, pos
		n.Parent, n.First, n.Next = parent, None, None
		n.Type, n.Overlong = typ, overlong
		if n.Err != nil {
			n.Err = nil
		}
		if prev == None {
			p.nodes[parent].First = i
		} else {
			p.nodes[prev].Next = i
		}
		prev = i
		switch typ {
		case Len:
			if val < pos {
				p.payload(i, val, pos, depth+1)
			}
		case StartGroup:
			if pos, ok = p.group(i, end, depth+1, strict); !ok {
				return pos, false, false
			}
		}
		if !strict && number-1 >= maxNumber && p.nodes[i].Err == nil {
			p.nodes[i].Err = &Error{Reason: NumberRange, Off: off, Number: number, Found: number, Left: end - off}
		}
	}
	return pos, false, group == noGroup || !strict
}

// payload tries the payload of Len node i as a message and takes the nodes
// back if it is none. Failing costs no second look at any byte at this level.
func (p *parser) payload(i int32, lo, hi, depth int) {
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
		p.nodes[i].Err = ErrNodes
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
		n.Err = &Error{Reason: TooDeep, Off: off, Number: number, Found: uint64(p.maxDepth), Left: end - off}
		n.Number = 0
		return end, true
	}
	next, closed, ok := p.fields(n.Val, end, i, depth, number, strict)
	n = &p.nodes[i] // the arena may have moved
	n.End = next
	if !closed && !strict {
		n.Err = &Error{Reason: GroupOpen, Off: off, Number: number, Left: end - off}
	}
	return next, ok
}

// extent is where a malformed field that begins before at ends: where that can
// be told, parsing goes on behind it, else the rest is garbage.
func (p *parser) extent(bad Reason, at, end int) int {
	switch bad {
	case StrayEnd:
		return at
	case ValueTooLong:
		for ; at < end; at++ {
			if p.data[at] < 0x80 {
				return at + 1
			}
		}
	}
	return end
}

func (p *parser) garbage(off, end int, parent int32, err error) int32 {
	return p.add(Node{Type: Garbage, Off: off, Tag: off, Val: off, End: end, Parent: parent, First: None, Next: None, Err: err})
}

// link makes i the child of parent that follows prev.
func (p *parser) link(parent, prev, i int32) {
	if prev == None {
		p.nodes[parent].First = i
	} else {
		p.nodes[prev].Next = i
	}
}
