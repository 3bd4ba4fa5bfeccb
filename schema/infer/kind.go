package infer

import (
	"math"

	"unwire/decode/kind"
	"unwire/decode/wire"
)

// A Kind is how a field's bytes are read.
type Kind = wire.Kind

// An alternative is a kind with its probability.
type alternative = kind.Alternative

// round keeps four digits of a probability.
func round(p float64) float64 { return math.Round(p*1e4) / 1e4 }
