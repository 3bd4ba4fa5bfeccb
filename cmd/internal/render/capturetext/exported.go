package capturetext

import (
	"fmt"

	"unwire/captures/formats"
	"unwire/cmd/internal/app"
)

// Exported returns a sentence that describes a finished export.
func Exported(format, out string, e formats.ExportResult) string {
	text := app.Counted(e.Exchanges, "exchange") + " written"
	switch format {
	case "raw":
		return fmt.Sprintf("%s of %s written to %s", app.Counted(e.Frames, "frame"), app.Counted(e.Exchanges, "exchange"), out)
	case "parquet":
		return fmt.Sprintf("%s with %s of %s written to %s", app.Counted(e.Frames, "frame"), app.Counted(e.Fields, "field"), app.Counted(e.Exchanges, "exchange"), out)
	case "pcapng":
		text += fmt.Sprintf(" as %s of %s, with the TLS keys to decrypt them", app.Counted(int(e.Packets), "packet"), app.Counted(e.Connections, "connection"))
	}

	// What is left out, with the format that would include it.
	if e.BodiesOmitted > 0 {
		text += fmt.Sprintf("; the bodies of %d exchanges are left out because they are too large for a HAR (--format jsonl includes them)", e.BodiesOmitted)
	}
	if e.WithoutPackets > 0 {
		text += fmt.Sprintf("; %d exchanges are left out because they are tunnels or never reached the server", e.WithoutPackets)
	}
	if e.Reframed > 0 {
		text += fmt.Sprintf("; %d bodies are written with chunked encoding because their length differs from Content-Length", e.Reframed)
	}
	if e.NotHTTP > 0 {
		text += fmt.Sprintf("; %s without HTTP left out because a HAR cannot contain them (--format jsonl and pcapng include them)", app.Counted(e.NotHTTP, "connection"))
	}
	if e.NoHandshake > 0 {
		text += fmt.Sprintf("; %s left out because the handshake was not recorded (--format jsonl includes them)", app.Counted(e.NoHandshake, "WebSocket"))
	}
	if e.WithoutProcess > 0 {
		text += fmt.Sprintf("; the program names of %s are left out because packets cannot include them", app.Counted(e.WithoutProcess, "exchange"))
	}
	return text
}
