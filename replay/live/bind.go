package live

import (
	"fmt"
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
	case b.token != "":
		fresh, ok := b.live(from)
		if !ok {
			return data, fmt.Errorf("the server's frame that corresponds to %s has no value %s (%s)", b.From, b.FromPath, b.Part)
		}
		return b.putInside(d, at, fresh)
	case b.value == zero:
		if source := values.LeafAt(from.leaves, b.FromPath); source != nil && at == nil {
			return d.Insert(b.Path, source)
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
		return data, fmt.Errorf("the server's frame that corresponds to %s has no field %s", b.From, b.FromPath)
	}
	return d.Set(at, source)
}

// isWhole reports whether the client's whole value comes from the server.
func (b *Binding) isWhole() bool {
	if b.word != "" {
		return b.wordAt == "" || "n"+b.word == b.value
	}
	return b.token == "" || "t"+b.token == b.value
}

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
	return d.Data, fmt.Errorf("the server's frame that corresponds to %s has no value %s (%s)", b.From, b.FromPath, b.Part)
}

// live returns the value in the live server message from that corresponds to the captured one; ok is
// false if there is none.
func (b *Binding) live(from *parsedMessage) (string, bool) {
	for k := range from.leaves {
		v := &from.leaves[k]
		if v.Path != b.FromPath {
			continue
		}
		for _, p := range v.PartsWith(map[string]bool{b.Part: true}) {
			if p.At == b.Part {
				return values.Spelling(b.How).Of(p.Value)
			}
		}
	}
	return "", false
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
