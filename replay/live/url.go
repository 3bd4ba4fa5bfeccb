package live

import (
	"net/url"
	"strings"

	"unwire/replay/live/values"
)

// urlTexts returns the texts in a URL that may contain identifiers, without their percent-encoding: the segments of the
// path and the values of the query; and the path and the query as a whole, for identifiers that contain a delimiter.
func urlTexts(u *url.URL) []string {
	list := []string{u.Path, u.RawQuery}
	add := func(text string, err error) {
		if err == nil && text != "" {
			list = append(list, text)
		}
	}
	for segment := range strings.SplitSeq(u.EscapedPath(), "/") {
		add(url.PathUnescape(segment))
	}
	for parameter := range strings.SplitSeq(u.RawQuery, "&") {
		_, value, _ := strings.Cut(parameter, "=")
		add(url.QueryUnescape(value))
	}
	return list
}

// replaceInURL replaces the identifiers in the path and in the query of a URL; changed is false if it contains none.
// Everything else keeps its percent-encoding.
func replaceInURL(x values.Replacements, u *url.URL) (out *url.URL, changed bool) {
	c := *u
	path, inPath := replaceParts(x, u.EscapedPath(), "/", url.PathUnescape, url.PathEscape)
	if !inPath {
		path, inPath = x.In(u.Path, values.MaxNested)
		path = (&url.URL{Path: path}).EscapedPath()
	}
	if inPath {
		text, err := url.PathUnescape(path)
		if err != nil {
			return u, false
		}
		c.Path, c.RawPath = text, path
	}
	query, inQuery := replaceParameters(x, u.RawQuery)
	if !inQuery {
		query, inQuery = x.In(u.RawQuery, values.MaxNested)
	}
	if inQuery {
		c.RawQuery = query
	}
	return &c, inPath || inQuery
}

// replaceParts replaces the identifiers in the parts of a text that sep separates and that are percent-encoded.
func replaceParts(x values.Replacements, text, sep string, unescape func(string) (string, error), escape func(string) string) (string, bool) {
	parts := strings.Split(text, sep)
	changed := false
	for i, part := range parts {
		plain, err := unescape(part)
		if err != nil {
			continue
		}
		if fresh, ok := x.In(plain, 0); ok {
			parts[i], changed = escape(fresh), true
		}
	}
	return strings.Join(parts, sep), changed
}

// replaceParameters replaces the identifiers in the values of a query.
func replaceParameters(x values.Replacements, query string) (string, bool) {
	parts := strings.Split(query, "&")
	changed := false
	for i, part := range parts {
		name, value, _ := strings.Cut(part, "=")
		if fresh, ok := replaceParts(x, value, "&", url.QueryUnescape, url.QueryEscape); ok {
			parts[i], changed = name+"="+fresh, true
		}
	}
	return strings.Join(parts, "&"), changed
}
