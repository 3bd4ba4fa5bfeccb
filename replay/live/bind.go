package live

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"unwire/replay/live/values"
)

// put returns the client's message data with the captured value replaced by the live one, which is in
// the server's message from. If an edit has already replaced the captured value, data is returned
// unchanged.
func (b *Binding) put(data []byte, from *parsedMessage) ([]byte, error) {
	d := values.Open(data, !b.json)
	at := d.At(b.Path)
	switch {
	case b.word != "":
		return b.putWord(d, at, from)
	case b.token != "" && b.ByHand:
		source := values.LeafAt(from.leaves, b.FromPath)
		if source == nil {
			return data, b.noSource()
		}
		return b.putInside(d, at, source.Text())
	case b.token != "":
		fresh, ok := b.live(from)
		if !ok {
			return data, fmt.Errorf("the server's frame that corresponds to %s of the recording has no value %s (%s)", frameWords(b.From), b.FromPath, b.Part)
		}
		return b.putInside(d, at, fresh)
	case b.value == zero:
		if source := values.LeafAt(from.leaves, b.FromPath); source != nil && at == nil {
			// The field that contains it may be a text, which is a message only by chance.
			if out, err := d.Insert(b.Path, source); err == nil {
				return out, nil
			}
		}
		return data, nil
	case at == nil || at.Value != b.value && !b.ByHand:
		return data, nil
	}
	source := values.LeafAt(from.leaves, b.FromPath)
	if source == nil {
		// protobuf omits a number that is zero
		if at.Number {
			return d.Remove(at)
		}
		return data, b.noSource()
	}
	return d.Set(at, source)
}

// noSource is the error for a live message of the server that lacks the value.
func (b *Binding) noSource() error {
	return fmt.Errorf("the server's frame that corresponds to %s of the recording has no field %s", frameWords(b.From), b.FromPath)
}

// isWhole reports whether the client's whole value comes from the server.
func (b *Binding) isWhole() bool {
	if b.word != "" {
		return b.wordAt == "" || "n"+b.word == b.value
	}
	return b.token == "" || "t"+b.token == b.value
}

// Carries reports whether the value that is replaced contains a placeholder for a secret, which the live
// server issues anew.
func (b *Binding) Carries(placeholder string) bool { return strings.Contains(b.redacted, placeholder) }

// putWord replaces the captured word in the value at, which is nil if an edit has deleted it.
func (b *Binding) putWord(d *values.Document, at *values.Leaf, from *parsedMessage) ([]byte, error) {
	if at == nil {
		return d.Data, nil
	}
	if source := values.LeafAt(from.leaves, b.FromPath); source != nil {
		if fresh, ok := source.WordAt(b.Part); ok {
			return d.ReplaceWord(at, b.wordAt, b.word, fresh)
		}
	}
	return d.Data, fmt.Errorf("the server's frame that corresponds to %s of the recording has no value %s (%s)", frameWords(b.From), b.FromPath, b.Part)
}

// live returns the value in the live server message from that corresponds to the captured one; ok is
// false if there is none.
func (b *Binding) live(from *parsedMessage) (string, bool) {
	for k := range from.leaves {
		if v := &from.leaves[k]; v.Path == b.FromPath {
			if p := b.partOf(v); p != nil {
				return values.Spelling(b.How).Of(p.Value)
			}
		}
	}
	return "", false
}

// partOf returns the part of the server's value v that the client sends; nil if v does not have it.
func (b *Binding) partOf(v *values.Leaf) *values.Part {
	parts := v.PartsWith(map[string]bool{b.Part: true})
	if i := slices.IndexFunc(parts, func(p values.Part) bool { return p.At == b.Part }); i >= 0 {
		return &parts[i]
	}
	return nil
}

// putInside replaces the captured identifier, which is only a part of the value at, by the live
// identifier fresh.
func (b *Binding) putInside(d *values.Document, at *values.Leaf, fresh string) ([]byte, error) {
	if at == nil || at.Object {
		return d.Data, nil
	}
	s, changed := at.Text(), false
	if values.IsPrintable([]byte(s)) && strings.Contains(s, b.token) && !values.IsDigits(b.token) {
		s, changed = strings.ReplaceAll(s, b.token, fresh), true
	} else {
		captured := s
		if s, changed = (values.Replacements{b.token: fresh}).In(captured, 0); !changed {
			s, changed = values.ReplaceDigits(captured, b.token, fresh)
		}
	}
	switch {
	case !changed && at.Value == b.value && fresh != b.token:
		return d.Data, fmt.Errorf("the captured value of field %s has an encoding in which replay cannot replace it", b.Path)
	case !changed:
		return d.Data, nil
	}
	if at.Number {
		value := values.Number(b.FromPath, s)
		return d.Set(at, &value)
	}
	return d.SetText(at, s)
}

// isListed reports whether the server's value is an element of a list.
func (b *Binding) isListed() bool {
	return b.word == "" && !b.ByHand && b.value != zero && (values.WithoutIndexes(b.FromPath) != b.FromPath || values.WithoutIndexes(b.Part) != b.Part)
}

// place returns the place of the server's value, with the captured value as the client sends it.
func (b *Binding) place() element {
	value := b.token
	if value == "" {
		value = b.value[1:]
	}
	return element{b.FromPath, b.Part, value}
}

// listOf returns the elements of the list in a server's message to which the value of b belongs, as the
// client sends them.
//
// leaves are the values in the message whose paths are that of the list, without indexes.
func (b *Binding) listOf(leaves []*values.Leaf) (list []element) {
	part := values.WithoutIndexes(b.Part)
	for _, v := range leaves {
		if v.Object || len(list) > maxOrdered {
			continue
		}
		if b.Part == "" && b.How == "" {
			list = append(list, element{v.Path, "", v.Text()})
			continue
		}
		for _, p := range v.Parts() {
			if value, ok := values.Spelling(b.How).Of(p.Value); ok && values.WithoutIndexes(p.At) == part {
				list = append(list, element{v.Path, p.At, value})
			}
		}
	}
	return list
}

// reorder changes the bindings of a client frame to the places of the live server's values, if the client
// sorts them. from are the live messages of the bindings; nil for those that are not known. If the capture
// does not show whether the client sorts, reorder returns a binding that cannot be replaced, and why.
func reorder(bindings []Binding, from []*parsedMessage) (unknown *Binding, reason string) {
	type list struct {
		*ordering
		down int
	}
	groups := map[list][]int{}
	for i := range bindings {
		if b := &bindings[i]; b.order != nil && from[i] != nil {
			at := list{b.order, b.source.down}
			groups[at] = append(groups[at], i)
		}
	}
	for o, group := range groups {
		slices.SortFunc(group, func(a, b int) int { return cmp.Compare(bindings[a].rank, bindings[b].rank) })
		b := &bindings[group[0]]
		all := b.listOf(from[group[0]].listed(values.WithoutIndexes(b.FromPath)))
		if !o.first {
			all = slices.DeleteFunc(all, func(e element) bool {
				return !slices.ContainsFunc(group, func(i int) bool { return bindings[i].place().isAt(e) })
			})
		}
		if o.sort(all); len(all) < len(group) {
			continue
		}
		for rank, i := range group {
			b := &bindings[i]
			if b.place().isAt(all[rank]) {
				continue
			}
			if !o.certain {
				return b, "the capture does not show whether the client sends values by their place in the server's list, or " + o.String() + ", and the live list gives two results"
			}
			b.FromPath, b.Part = all[rank].path, all[rank].part
		}
	}
	return nil, ""
}
