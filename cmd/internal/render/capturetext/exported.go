package capturetext

import (
	"fmt"

	"unwire/captures/formats"
	"unwire/cmd/internal/app"
)

// Exported returns a sentence that describes a finished export.
func Exported(format, out string, e formats.ExportResult) string {
	text := "wrote " + app.Counted(e.Exchanges, "exchange")
	switch format {
	case "raw":
		return fmt.Sprintf("wrote %s of %s to %s", app.Counted(e.Frames, "frame"), app.Counted(e.Exchanges, "exchange"), out)
	case "parquet":
		return fmt.Sprintf("wrote %s with %s of %s to %s", app.Counted(e.Frames, "frame"), app.Counted(e.Fields, "field"), app.Counted(e.Exchanges, "exchange"), out)
	case "pcapng":
		text += fmt.Sprintf(" as %s of %s, with the TLS keys that decrypt the packets", app.Counted(int(e.Packets), "packet"), app.Counted(e.Connections, "connection"))
	}

	// What is left out, with the format that would include it.
	if e.BodiesOmitted > 0 {
		text += fmt.Sprintf(". The file lacks the bodies of %s, because they are too large for a HAR; --format jsonl exports all bodies", app.Counted(e.BodiesOmitted, "exchange"))
	}
	if e.WithoutPackets > 0 {
		text += fmt.Sprintf(". The file lacks %s that had no connection to a server, or whose tunnel was not decoded", app.Counted(e.WithoutPackets, "exchange"))
	}
	if e.Reframed > 0 {
		text += fmt.Sprintf(". The header content-length of %s differs from the length of the body, so export wrote the body in chunked encoding", app.Counted(e.Reframed, "message"))
	}
	if e.NotHTTP > 0 {
		text += fmt.Sprintf(". The file lacks %s without HTTP, because a HAR can contain only HTTP; --format jsonl and pcapng export all connections", app.Counted(e.NotHTTP, "connection"))
	}
	if e.NoHandshake > 0 {
		text += fmt.Sprintf(". The file lacks %s whose handshake was not recorded; --format jsonl exports all WebSockets", app.Counted(e.NoHandshake, "WebSocket"))
	}
	if e.WithoutProcess > 0 {
		text += fmt.Sprintf(". The file lacks the program names of %s, because packets cannot contain them", app.Counted(e.WithoutProcess, "exchange"))
	}
	return text
}
