package render

import (
	"cmp"
	"fmt"
	"strings"

	"unwire/cmd/internal/term"
	"unwire/decode/transcript"
)

// Weights prints a table of how much each feature of a text adds to the log odds of each role. If changes
// is set, it prints only the features whose weights differ from the built-in ones.
func Weights(out *term.Output, w, built *transcript.Weights, changes bool) error {
	columns := []term.Column{{Name: "FEATURE"}}
	for i, r := range w.Roles() {
		columns = append(columns, term.Column{Name: strings.ToUpper(string(r)), Right: true, Drop: i})
	}
	var rows [][]string
	for _, name := range w.Features() {
		row := []string{featureText(name)}
		differs := false
		before := built.Row(name)
		for i, v := range w.Row(name) {
			cell := fmt.Sprintf("%g", v)
			if v != before[i] {
				cell = fmt.Sprintf("%g → %g", before[i], v)
				differs = true
			}
			row = append(row, cell)
		}
		if !changes || differs {
			rows = append(rows, row)
		}
	}
	return out.Table(term.Table{Columns: columns, Rows: rows, Legend: weightsLegend})
}

// weightsLegend explains the numbers of Weights.
const weightsLegend = "(numbers: how strongly the feature of a text speaks for the role, or with a minus sign against it; 0 means no influence)"

// WeightsFit returns one line about fitted weights: accuracy and loss, before, after and by
// cross-validation.
func WeightsFit(r *transcript.FitReport) string {
	return fmt.Sprintf("%d labels (texts whose role you set with chat --label) of %d roles. Labelled texts that get the right role: %.1f%% with the old weights, %.1f%% with the new weights. For other texts, expect %.1f%% (cross-validation with %d folds). "+
		"Loss (lower is better): %.3f with the old weights, %.3f in the cross-validation",
		r.Labels, r.Roles, 100*r.Before, 100*r.After, 100*r.Held, r.Folds, r.LossBefore, r.LossHeld)
}

// featureTexts describe, for people, the features whose names are too short to be understood. The names
// themselves are fixed, because weights files and labels files contain them.
var featureTexts = map[string]string{
	"prior":                          "how frequent the role is in general",
	"deltas of one text":             "pieces that continue one text",
	"growing snapshots":              "each piece extends the last one",
	"sent during the answer":         "sent by the client during the answer",
	"separate values":                "several separate values",
	"constant":                       "the same value in several frames",
	"length":                         "length of the text",
	"language-like":                  "natural language",
	"prose":                          "long natural language",
	"program word":                   "looks like an identifier",
	"think tag":                      "begins with a <think> tag",
	"asks":                           "questions by the server",
	"status line":                    "a short line about progress",
	"trails the text":                "lines sent after the text ended",
	"answered before":                "an earlier answer, sent again",
	"the only choice":                "the only possible short answer",
	"said twice":                     "short text the server sends twice",
	"begins a replayed conversation": "earlier messages, sent again",
	"named as the answer":            "a short value in an answer field",
	"shares its path with text":      "other texts have the same path",
	"echo of the request":            "repeats a text of the client",
	"precedes the answer":            "text before the answer",
	"follows the thinking":           "text after the thinking",
	"single beside a stream":         "one frame, next to a streamed text",
	"headline":                       "one short line, like a title",
	"longest text":                   "the server's longest text",
	"pieces are lines":               "each piece is a whole line",
	"beside a file path":             "next to a file path",
	"beside JSON":                    "next to JSON",
	"beside an id":                   "next to an identifier",
	"failed exchange":                "the exchange failed",
	"repeats a better candidate":     "part of a better candidate",
	"JSON without a tool":            "JSON without a tool's name",
	"in a stored message":            "inside an earlier, stored message",
	"marked on the wire":             "the message itself names the role",
	"named text":                     "field name suggests text",
	"named assistant":                "field name suggests the assistant",
	"named thinking":                 "field name suggests thinking",
	"named tool call":                "field name suggests a tool call",
	"named tool result":              "field name suggests a tool result",
	"named user":                     "field name suggests the user",
	"named system":                   "field name suggests a system prompt",
	"named metadata":                 "field name suggests metadata",
	"named id":                       "field name suggests an identifier",
}

// featureText returns a phrase that people understand for a feature of a reason or of weights.
func featureText(name string) string { return cmp.Or(featureTexts[name], name) }
