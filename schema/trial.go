package schema

// A trial is what a class would be if it were joined with others.
type trial struct {
	into   *trial
	root   string
	fields map[int32]trialField
}

type trialField struct {
	kind    Kind
	element elementType
	likely  bool // a message, for one of the joined
	odd     bool // cannot be joined with anything
	kid     *class
}

// trials are the classes of one attempt to join.
type trials map[*class]*trial

func (ts trials) of(c *class) *trial {
	c = c.find()
	t := ts[c]
	if t == nil {
		t = &trial{root: c.root, fields: make(map[int32]trialField, len(c.fields))}
		for n, f := range c.fields {
			t.fields[n] = trialField{
				kind: f.verdict.kind, element: f.verdict.element, likely: f.likely(),
				odd: f.verdict.odd > 0 || f.group != nil, kid: f.kid,
			}
		}
		ts[c] = t
	}
	for t.into != nil {
		t = t.into
	}
	return t
}

// compatible reports whether one type can describe both classes, and whatever
// becomes one through joining them: for every field, the same wire type and a
// kind that nobody's payloads refute.
func compatible(a, b *class) bool {
	ts := trials{}
	work := [][2]*class{{a, b}}
	for len(work) > 0 {
		x, y := ts.of(work[len(work)-1][0]), ts.of(work[len(work)-1][1])
		work = work[:len(work)-1]
		if x == y {
			continue
		}
		if x.root != "" && y.root != "" {
			return false // two roots keep two names
		}
		if x.root == "" {
			x.root = y.root
		}
		y.into = x
		for n, g := range y.fields {
			f, common := x.fields[n]
			if !common {
				x.fields[n] = g
				continue
			}
			if f.odd || g.odd {
				return false
			}
			if f.likely || g.likely {
				if f.kid == nil || g.kid == nil {
					return false
				}
				work = append(work, [2]*class{f.kid, g.kid})
			} else if f.kind != g.kind || f.element != g.element {
				return false
			}
			f.likely = f.likely || g.likely
			if f.kid == nil || g.kid == nil {
				f.kid = nil
			}
			if f.likely {
				f.kind = KindMessage
			}
			x.fields[n] = f
		}
	}
	return true
}
