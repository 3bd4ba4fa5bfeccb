package capturetext

import (
	"fmt"

	"unwire/mitm/launch"
)

// LostPackets reports, in words, which packets a recording lacks; "" for none.
func LostPackets(n launch.Packets) string {
	text := ""
	if n.Dropped > 0 {
		text += fmt.Sprintf("; %d more were lost: they came faster than they could be taken", n.Dropped)
	}
	if n.Cut > 0 {
		text += fmt.Sprintf("; %d are cut short", n.Cut)
	}
	return text
}
