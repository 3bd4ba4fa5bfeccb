package transcript

import (
	"strings"

	"unwire/captures"
	"unwire/decode/transcript/language"
)

const (
	smallFrame = 24  // texts of a frame that are taken to belong together
	maxLooked  = 200 // pieces of a stream whose neighbours are looked at
)

// A neighbourhood is what stands beside a text: in its frame, if that is small, else
// in its message.
type neighbourhood struct {
	id, json, filePath bool
	text               bool // language
	words              int
	ids                []string
	first              int // frame

	// Of all of the frame, where x is of a message in it; else nil.
	frame *neighbourhood
}

func (x *neighbourhood) addNeighbour(s *stream, p piece) {
	switch s.class {
	case uuid, hexID, randomID, token:
		if s.inMostFrames {
			break // it tells the exchange from others, not a call
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

// callLikelihood says how much x looks like a call of a tool; own is how many of its words
// are not to count.
func (x *neighbourhood) callLikelihood(own int) float64 {
	switch {
	case x.json && (x.id || x.words > own):
		return 1
	case x.text:
		return 0 // names and ids beside a text are its metadata
	case x.frame != nil && x.frame.text && !x.filePath:
		return 0
	case x.id && x.words > own:
		return 0.7
	case x.id && x.filePath:
		return 0.9
	}
	return 0
}

// addNeighbourFeatures sets the features that come from what stands beside the pieces.
func (s *stream) addNeighbourFeatures(around, beside func(piece) *neighbourhood, calls map[string]int) {
	f := &s.features
	pieces := s.pieces[:min(len(s.pieces), maxLooked)]
	for _, p := range pieces {
		x, own := around(p), beside(p)
		mine := 0
		if s.class == word && !strings.ContainsAny(p.text, "_.:-") && !language.HasCamel(p.text) {
			mine = 1 // a word makes no call of itself, unless it names a function
		}
		f[inCall] += x.callLikelihood(mine)
		for _, id := range x.ids {
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
