package tools

import (
	"strconv"
	"strings"

	"unwire/replay/agent/internal/message"
)

// answerGrep writes the matches in text, the output of a search tool, into the message success, in the
// output mode that args requests.
func answerGrep(success, args message.Message, text string) {
	mode := args.Text("output_mode")
	success.Set("pattern", args.Text("pattern")).Set("path", args.Text("path")).Set("output_mode", mode)
	results := success.Mutable(success.Field("workspace_results")).Map()
	union := message.Message{Message: results.NewValue().Message()}
	switch {
	case mode == "files_with_matches", args.Text("pattern") == "":
		files := union.At("files")
		n := 0
		for line := range strings.Lines(text) {
			if name := strings.TrimSpace(line); name != "" {
				files.Add("files", name)
				n++
			}
		}
		files.Set("total_files", n)
	default:
		grepContent(union.At("content"), text)
	}
	results.Set(message.MapKey(args.Text("path")), message.ValueOf(union))
}

// grepContent parses text, lines of the form FILE:LINE:TEXT as grep and ripgrep print them, into the
// message content. A line of another form becomes a match without a file name.
func grepContent(content message.Message, text string) {
	n := 0
	files := map[string]message.Message{}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			continue
		}
		file, number, rest := splitMatch(line)
		m, ok := files[file]
		if !ok {
			m = content.AddNew("matches").Set("file", file)
			files[file] = m
		}
		m.AddNew("matches").Set("line_number", number).Set("content", rest)
		n++
	}
	content.Set("total_lines", n).Set("total_matched_lines", n)
}

// splitMatch parses a line FILE:LINE:TEXT. A line of another form is returned as text, with file "" and
// number 0.
func splitMatch(line string) (file string, number int, text string) {
	parts := strings.SplitN(line, ":", 3)
	if len(parts) == 3 {
		if n, err := strconv.Atoi(parts[1]); err == nil && n >= 0 && n <= 1<<30 {
			return parts[0], n, parts[2]
		}
	}
	return "", 0, line
}
