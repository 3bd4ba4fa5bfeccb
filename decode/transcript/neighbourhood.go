package transcript

import (
	"strings"

	"unwire/captures"
	"unwire/decode/transcript/language"
)

const (
	// smallFrame is the maximum number of texts in a frame for all of them to count as neighbours of each other.
	smallFrame = 24

	// maxLooked is the maximum number of pieces of a stream whose neighbours are
	// examined.
	maxLooked = 200
)

// A neighbourhood describes the values next to a text, which may be the other parts of a tool call: those in its
// frame if the frame is small, otherwise those in its message.
type neighbourhood struct {
	// id, json and filePath mean that there is an identifier, JSON or a file path.
	id, json, filePath bool

	// text means that there is natural language.
	text bool

	// words is the number of words that look like names in a program, such as the name of a tool.
	words int

	// ids are the identifiers next to the text.
	ids []string

	// first is the index of the frame in the exchange.
	first int

	// frame is the neighbourhood of the whole frame if this one is of a message in it;
	// otherwise nil.
	frame *neighbourhood
}

// addNeighbour adds piece p of stream s to the neighbourhood.
func (x *neighbourhood) addNeighbour(s *stream, p textPiece) {
	switch s.class {
	case uuid, hexID, randomID, token:
		if s.inMostFrames {
			// It identifies the exchange, not a call.
			break
		}
		x.id = true
		x.ids = append(x.ids, p.text)
	case jsonWhole, jsonPart:
		x.json = true
	case word:
		if !s.discriminates && s.kind != same && s.features[saysRole+metadata] < 1 {
			x.words++
		}
	case filePath:
		x.filePath = true
	case plain:
		x.text = x.text || s.features[languageLike] >= 0.5
	}
}

// callLikelihood scores, from 0 to 1, how much the values look like a call of a tool. own is the number of words
// that belong to the text itself and do not count.
func (x *neighbourhood) callLikelihood(own int) float64 {
	switch {
	case x.json && (x.id || x.words > own):
		return 1
	case x.text:
		// Names and identifiers next to a text are its metadata.
		return 0
	case x.frame != nil && x.frame.text && !x.filePath:
		return 0
	case x.id && x.words > own:
		return 0.7
	case x.id && x.filePath:
		return 0.9
	}
	return 0
}

// addNeighbourFeatures sets the features that are derived from the values next to the pieces of s, as the average
// over the pieces. around and beside return the wide and the narrow neighbourhood of a piece; calls has the index
// of the frame in which the identifier of each call was first sent.
func (s *stream) addNeighbourFeatures(around, beside func(textPiece) *neighbourhood, calls map[string]int) {
	f := &s.features
	pieces := s.pieces[:min(len(s.pieces), maxLooked)]
	for _, p := range pieces {
		x, own := around(p), beside(p)
		mine := 0
		if s.class == word && !strings.ContainsAny(p.text, "_.:-") && !language.HasCamel(p.text) {
			// A word does not make a call of its own neighbourhood, unless it looks like
			// a function's name.
			mine = 1
		}
		f[inCall] += x.callLikelihood(mine)
		for _, id := range x.ids {
			// The identifier of an earlier call: this is its result.
			if made, ok := calls[id]; ok && made < p.frame && (s.dir == captures.Up || f[jsonText] == 0) {
				f[afterCall]++
				break
			}
		}
		if s.dir == captures.Up && own.filePath && s.class != filePath {
			f[besidePath]++
		}
		if s.dir == captures.Up && own.json && f[jsonText] == 0 {
			f[besideJSON]++
		}
		if s.dir == captures.Up && own.id && f[identifier] == 0 {
			f[besideID]++
		}
	}

	for _, k := range [...]feature{inCall, afterCall, besidePath, besideJSON, besideID} {
		f[k] /= float64(len(pieces))
	}
	if s.dir == captures.Up {
		f[inCall] = 0
	}
}
