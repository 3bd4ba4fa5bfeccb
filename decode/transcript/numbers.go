package transcript

import "unwire/captures"

// numbers are the values of one path that holds numbers.
type numbers struct {
	dir         captures.Direction
	path, name  string
	count       int
	first, last int   // frames
	group       int32 // of the last value
	value       int64 // the last
	most        int64
	falls       bool // a value was less than the one before
}

func (n *numbers) addValue(frame int, group int32, value int64) {
	if n.count > 0 && value < n.value {
		n.falls = true
	}
	n.count++
	n.last, n.group, n.value, n.most = frame, group, value, max(n.most, value)
}
