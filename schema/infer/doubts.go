package infer

// surelyLabelled is the probability from which on nothing is said to settle a label.
const surelyLabelled = 0.95

// alsoSettle adds to what would settle the doubts of a field.
func (d *declared) alsoSettle(text string) {
	switch {
	case text == "":
	case d.Settle == "":
		d.Settle = text
	default:
		d.Settle += "; " + text
	}
}

// settleLabel says what would tell how often a field is in a message.
func (d *declared) settleLabel(f *classField) string {
	switch {
	case d.LabelP >= surelyLabelled || d.skip != "":
		return ""
	case d.Label == Map && f.Most > 1:
		return "a message with one key twice would make it a list"
	case d.Label == Map:
		return "a message with several entries: with one key twice it is a list, always with other keys a map"
	case d.Label == Repeated && f.Most > 1 && f.kid != nil && f.kid.find().isPair():
		return "a message with one key twice shows a list, many with other keys each time a map"
	case d.Label == Repeated:
		return ""
	case f.kid != nil && f.kid.find().isPair() && !f.Len.NotMap:
		return "a message that has it twice would make it a list, or a map where the first fields differ"
	}
	return "a message that has it twice would make it repeated"
}

// settleMembers adds to each field of a oneof what would settle whether it is one.
func (c *choice) settleMembers(fields map[int32]*declared) {
	if c.p >= surelyLabelled {
		return
	}
	for _, n := range c.numbers {
		fields[n].alsoSettle("a message with two of " + numberList(c.numbers) + " would show that they are no oneof")
	}
}
