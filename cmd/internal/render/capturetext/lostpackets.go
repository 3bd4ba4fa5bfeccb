package capturetext

import (
	"fmt"

	"unwire/mitm/launch"
)

// LostPackets describes which packets a passive recording lacks; "" if it is complete.
func LostPackets(n launch.Packets) string {
	text := ""
	if n.Dropped > 0 {
		text += fmt.Sprintf("; %d more were lost because they arrived too fast", n.Dropped)
	}
	if n.Cut > 0 {
		text += fmt.Sprintf("; %d are truncated", n.Cut)
	}
	return text
}
