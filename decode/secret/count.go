package secret

import "unwire/captures/redact"

// Counts holds the numbers of findings by kind.
type Counts struct {
	// Values is the number of probable secrets, and Staying the number of those that Clean does not remove.
	Values, Staying int

	// Unsearched is the number of places that could not be searched, and UnsearchedBytes the number of bytes there.
	Unsearched, UnsearchedBytes int
}

// Count counts the findings of an audit by kind.
func Count(found []Finding) Counts {
	var c Counts
	for i := range found {
		f := &found[i]
		switch {
		case f.Rule == redact.RuleUnsearched:
			c.Unsearched, c.UnsearchedBytes = c.Unsearched+f.Count, c.UnsearchedBytes+f.Len
		case f.Stays:
			c.Values, c.Staying = c.Values+f.Count, c.Staying+f.Count
		default:
			c.Values += f.Count
		}
	}
	return c
}
