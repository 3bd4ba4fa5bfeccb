package render

import "strings"

// Place returns the path of a difference in words: "server frame 3, field 1.2" for @down/3 1.2, "several server
// frames, field 1" for the joined text of several frames (@down 1), and "field 1.2" for a field of a message. Other
// paths, such as "status", are unchanged.
func Place(path string) string { return place(path, severalFrames) }

// severalFrames precedes the name of frames whose text was joined.
const severalFrames = "several "

// place is Place with the text that precedes several frames.
func place(path, several string) string {
	frame, field, _ := strings.Cut(path, " ")
	if !strings.HasPrefix(frame, "@") {
		frame, field = "", path
	}
	if field != "" && field[0] >= '0' && field[0] <= '9' {
		field = "field " + field
	}
	if frame == "" {
		return field
	}
	dir, number, single := strings.Cut(frame[1:], "/")
	place := several + Sender(dir) + " frames"
	if single {
		place = Sender(dir) + " frame " + number
	}
	if field == "" {
		return place
	}
	return place + ", " + field
}
