package secret

import "unwire/captures/redact"

// Counts are how many findings there are.
type Counts struct {
	// Values counts what looks like a secret, Staying those of them that a copy without
	// secrets keeps.
	Values, Staying int

	// Unsearched counts the places that could not be searched, UnsearchedBytes the bytes
	// there.
	Unsearched, UnsearchedBytes int
}

// Count counts findings.
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
