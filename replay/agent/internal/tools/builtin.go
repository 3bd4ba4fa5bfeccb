package tools

import (
	"strings"

	"unwire/replay/agent/internal/message"
	"unwire/replay/agent/turn"
)

// answerBuiltIn converts the result of a client's tool to the result of the server's built-in tool that
// e requests. The text output of tools has no common format, so fields that cannot be derived from it
// are left out. text is the text of r.
func (s *Set) answerBuiltIn(e *Exec, r *turn.Result, text string) []message.Message {
	if e.Kind == "shell_stream_args" {
		return s.streamShell(e, r, text)
	}
	root, result := s.answer(e)

	// A failed shell command is an ordinary result with an exit code; other failures have their own
	// form.
	if r.IsError && e.Kind != "shell_args" {
		if !refuseAs(result, e.Args, text, "error", "rejected") {
			return []message.Message{s.throw(e, text)}
		}
		return []message.Message{root}
	}
	switch e.Kind {
	case "shell_args":
		answerShell(result, e.Args, r, text)
	case "read_args", "redacted_read_args":
		answerRead(result.At("success"), e.Args, r, text)
	case "write_args":
		content := e.Args.Text("file_text")
		result.At("success").Set("path", e.Args.Text("path")).Set("lines_created", lines(content)).Set("file_size", len(content))
	case "delete_args":
		result.At("success").Set("path", e.Args.Text("path")).Set("deleted_file", e.Args.Text("path"))
	case "ls_args":
		answerList(result.At("success", "directory_tree_root"), e.Args.Text("path"), text)
	case "grep_args":
		answerGrep(result.At("success"), e.Args, text)
	case "fetch_args":
		result.At("success").Set("url", e.Args.Text("url")).Set("content", text).Set("status_code", 200).Set("content_type", "text/plain")
	default:
		return s.Refuse(e, "unwire cannot convert the tool's result to the type that the upstream expects")
	}
	return []message.Message{root}
}

// streamShell converts the result of a shell command to the sequence of messages start, output and
// exit.
func (s *Set) streamShell(e *Exec, r *turn.Result, text string) []message.Message {
	start, event := s.answer(e)
	event.At("start")
	list := []message.Message{start}
	output, code := "stdout", 0
	if r.IsError {
		output, code = "stderr", 1
	}
	if text != "" {
		root, event := s.answer(e)
		event.At(output).Set("data", text)
		list = append(list, root)
	}
	root, event := s.answer(e)
	event.At("exit").Set("code", code).Set("cwd", e.Args.Text("working_directory"))
	return append(list, root)
}

// answerShell writes the result of a shell command: success or failure, its output, and the fields
// repeated from args.
func answerShell(result, args message.Message, r *turn.Result, text string) {
	name, output, code := "success", "stdout", 0
	if r.IsError {
		name, output, code = "failure", "stderr", 1
	}
	member := result.At(name).Set("exit_code", code).Set(output, text)
	message.CopyCommon(member, args)
}

// answerRead writes the content of a file into the message success: text, or the first image of r.
func answerRead(success, args message.Message, r *turn.Result, text string) {
	success.Set("path", args.Text("path"))
	if text == "" {
		for i := range r.Parts {
			if image := r.Parts[i].Image; image != nil {
				success.Set("data", image.Data).Set("file_size", len(image.Data))
				return
			}
		}
	}
	success.Set("content", text).Set("total_lines", lines(text)).Set("file_size", len(text))
}

// answerList writes a directory listing into the message root. Each line of text is a name, with a
// trailing slash for folders.
func answerList(root message.Message, path, text string) {
	root.Set("abs_path", path).Set("children_were_processed", true)
	files := 0
	for line := range strings.Lines(text) {
		name := strings.TrimSpace(line)
		switch folder, ok := strings.CutSuffix(name, "/"); {
		case name == "":
		case ok:
			root.AddNew("children_dirs").Set("abs_path", join(path, folder))
		default:
			root.AddNew("children_files").Set("name", name)
			files++
		}
	}
	root.Set("num_files", files)
}

// join returns the path of name in a folder; name itself if it is absolute.
func join(folder, name string) string {
	if folder == "" || strings.HasPrefix(name, "/") {
		return name
	}
	return strings.TrimSuffix(folder, "/") + "/" + name
}

// lines counts lines as editors do: an unterminated last line counts.
func lines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}
