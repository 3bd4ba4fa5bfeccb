package capturetext

import (
	"fmt"

	"unwire/captures/formats"
	"unwire/cmd/internal/app"
)

// Exported is what an export to out in a format wrote, in words.
func Exported(format, out string, e formats.Exported) string {
	text := app.Counted(e.Exchanges, "exchange") + " written"
	switch format {
	case "raw":
		return fmt.Sprintf("%s of %s written to %s", app.Counted(e.Frames, "frame"), app.Counted(e.Exchanges, "exchange"), out)
	case "parquet":
		return fmt.Sprintf("%s with %s of %s written to %s", app.Counted(e.Frames, "frame"), app.Counted(e.Fields, "field"), app.Counted(e.Exchanges, "exchange"), out)
	case "pcapng":
		text += fmt.Sprintf(" as %s of %s, with the secrets that open them", app.Counted(int(e.Packets), "packet"), app.Counted(e.Connections, "connection"))
	}
	if e.Omitted > 0 {
		text += fmt.Sprintf(", %d of them without their bodies, which are too large for a HAR: --format jsonl has them", e.Omitted)
	}
	if e.LeftOut > 0 {
		text += fmt.Sprintf("; %d left out, which never reached the server or are tunnels", e.LeftOut)
	}
	if e.Reframed > 0 {
		text += fmt.Sprintf("; %d bodies are sent in chunks, as they have not the length that their headers say", e.Reframed)
	}
	if e.NotHTTP > 0 {
		text += fmt.Sprintf("; %s left out, which have no HTTP in them and no place in a HAR: --format jsonl and pcapng have them", app.Counted(e.NotHTTP, "connection"))
	}
	if e.NoHandshake > 0 {
		text += fmt.Sprintf("; %s left out without a handshake in the capture: --format jsonl has them", app.Counted(e.NoHandshake, "WebSocket"))
	}
	if e.Unnamed > 0 {
		text += fmt.Sprintf("; packets do not say which program made a connection, which is known of %s", app.Counted(e.Unnamed, "exchange"))
	}
	return text
}
