package standin

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/replay/standin/history"
)

// summaries are values that templates can use of a tool's result in addition to its fields:
// ${NAME.text}, ${NAME.images} and ${NAME.kind}.
var summaries = map[string]func(protoreflect.Message) string{
	"text":   resultText,
	"images": func(m protoreflect.Message) string { return history.Images(resultImages(m)) },
	"kind": func(m protoreflect.Message) string {
		kind, _ := member(m)
		return string(kind)
	},
}

// textFields are the names of fields in which tool results may have their text, the most likely first.
var textFields = []protoreflect.Name{"stdout", "content", "output", "text", "markdown", "error", "reason", "message", "answer", "path", "name"}

// resultText returns the text of a tool result of any type: the first text of an McpResult, otherwise
// the first field in textFields that is not empty.
func resultText(m protoreflect.Message) string {
	_, inner := member(m)
	if inner == nil {
		return ""
	}
	for _, item := range contentItems(inner) {
		if has(item, "text") {
			return get(item, "text", "text").String()
		}
	}
	for _, name := range textFields {
		if text := stringField(inner, name); text != "" {
			return strings.TrimSuffix(text, "\n")
		}
	}
	return ""
}

// resultImages returns the images of an McpResult.
func resultImages(m protoreflect.Message) (images []history.Part) {
	_, inner := member(m)
	if inner == nil {
		return nil
	}
	for _, item := range contentItems(inner) {
		if has(item, "image") {
			images = append(images, history.Part{
				Kind: "image", Image: get(item, "image", "data").Bytes(), MIME: get(item, "image", "mime_type").String(),
			})
		}
	}
	return images
}

// contentItems returns the content items of an McpSuccess; nil for messages of other types.
func contentItems(success protoreflect.Message) (items []protoreflect.Message) {
	if success.Descriptor().Name() != "McpSuccess" {
		return nil
	}
	list := get(success, "content").List()
	for i := range list.Len() {
		items = append(items, list.Get(i).Message())
	}
	return items
}
