package history

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// Print formats a transcript as text, with one line for each part.
func Print(transcript []Message) string {
	var b strings.Builder
	for _, m := range transcript {
		for _, p := range m.Parts {
			switch p.Kind {
			case "text":
				fmt.Fprintf(&b, "%s: %s\n", m.Role, p.Text)
			case "reasoning":
				fmt.Fprintf(&b, "%s thinks: %s\n", m.Role, p.Text)
			case "image":
				fmt.Fprintf(&b, "%s shows: %s\n", m.Role, Images([]Part{p}))
			case "tool-call":
				fmt.Fprintf(&b, "%s calls %s %s\n", m.Role, p.Name, p.Args)
			case "tool-result":
				fmt.Fprintf(&b, "%s %s: %s\n", m.Role, p.Name, Text(p.Result))
			}
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Images describes images by media type, size and SHA-256, on one line.
func Images(images []Part) string {
	var list []string
	for _, p := range images {
		if p.Kind == "image" {
			list = append(list, fmt.Sprintf("%s, %d bytes, sha256 %x", p.MIME, len(p.Image), sha256.Sum256(p.Image)))
		}
	}
	if list == nil {
		return "no images"
	}
	return strings.Join(list, "; ")
}
