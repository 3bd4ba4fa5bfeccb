package contract

import "unwire/decode/diff"

// Change is one difference between two frames or exchanges.
type Change struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Change is the difference. Of a pair of exchanges in two captures, its path begins
	// with the call.
	diff.Change

	// Name is the path with field names; missing if there are no definitions.
	Name string `json:"name,omitempty"`

	// OldHex are the differing bytes of the first side in hex; missing without --hex.
	OldHex string `json:"old_hex,omitempty"`

	// NewHex are the differing bytes of the second side in hex; missing without --hex.
	NewHex string `json:"new_hex,omitempty"`
}

// Variation is a path whose values were compared over a series of messages or exchanges.
type Variation struct {
	// version adds the member v, the version number of the JSON format.
	version
	// Variation is the path with its values; its fields become members of the JSON object.
	diff.Variation

	// Name is the path with field names; missing if there are no definitions.
	Name string `json:"name,omitempty"`
}
