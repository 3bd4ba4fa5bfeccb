package field

import (
	"math"
	"slices"
)

// JSONValue replaces NaN and infinities by strings, also inside lists, because JSON has no numbers for them.
func JSONValue(v any) any {
	switch v := v.(type) {
	case float32:
		if s := notFinite(float64(v)); s != "" {
			return s
		}
	case float64:
		if s := notFinite(v); s != "" {
			return s
		}
	case []float32:
		return jsonList(v)
	case []float64:
		return jsonList(v)
	}
	return v
}

// jsonList applies JSONValue to a list. Lists without such values are returned unchanged.
func jsonList[T float32 | float64](list []T) any {
	if !slices.ContainsFunc(list, func(f T) bool { return notFinite(float64(f)) != "" }) {
		return list
	}
	out := make([]any, len(list))
	for i, f := range list {
		out[i] = JSONValue(f)
	}
	return out
}

// notFinite returns the word for NaN or an infinity, or "" for a finite number.
func notFinite(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return ""
}
