package term

import (
	"strings"
	"unicode"
)

// ellipsis marks where a text was cut.
const ellipsis = "…"

// A Shortening selects the part of a text that is cut if the text is too wide.
type Shortening int

const (
	// whole leaves nothing out: numbers, ids and codes. On a terminal that is too narrow
	// even for them, the end is.
	whole Shortening = iota

	// Middle leaves out the middle: addresses, URLs.
	Middle

	// End cuts the end of a text at a word; for sentences.
	End

	// Start leaves out the beginning: paths of files.
	Start

	// Name leaves out packages and folders before the last name: shop.v1.OrderService/List
	// becomes …OrderService/List.
	Name
)

// Shorten cuts a text without control characters to at most width cells, in the way that how selects.
func Shorten(s string, width int, how Shortening) string { return how.apply(s, width) }

// apply cuts s to at most width cells.
func (how Shortening) apply(s string, width int) string {
	if Cells(s) <= width {
		return s
	}
	switch how {
	case Middle:
		return cutMiddle(s, width)
	case Start:
		return cutStart(s, width)
	case Name:
		return cutName(s, width)
	case End:
		return cutEnd(s, width)
	}
	return FirstCells(s, width-1) + ellipsis
}

// cutMiddle cuts out the middle of a text. It keeps more of the end than of the beginning, because names
// often differ at the end.
func cutMiddle(s string, width int) string {
	head := FirstCells(s, (width-1)*2/5)
	return head + ellipsis + lastCells(s, width-1-Cells(head))
}

// cutStart cuts off the beginning of a text, up to a slash if the rest contains one.
func cutStart(s string, width int) string {
	kept := lastCells(s, width-Cells(ellipsis))
	if at := strings.IndexByte(kept, '/'); at > 0 && at < len(kept)-1 {
		kept = kept[at:]
	}
	return ellipsis + kept
}

// cutEnd cuts off the end of a text, at a word boundary unless that would lose more than a third of the
// width.
func cutEnd(s string, width int) string {
	kept := strings.TrimSuffix(FirstCells(s, width-1), ellipsis)
	if at := strings.LastIndexFunc(kept, unicode.IsSpace); at > 0 && !beginsWithSpace(s[len(kept):]) {
		if words := strings.TrimRightFunc(kept[:at], unicode.IsSpace); Cells(words)+2 >= width*2/3 {
			return words + " " + ellipsis
		}
	}
	return strings.TrimRightFunc(kept, unicode.IsSpace) + ellipsis
}

// beginsWithSpace reports whether the first character of s is white space.
func beginsWithSpace(s string) bool {
	return s != "" && unicode.IsSpace([]rune(s)[0])
}

// nameBreaks are the characters that separate the parts of qualified names.
const nameBreaks = "./"

// lastName returns the distinguishing part of a qualified name: Service/Method of
// pkg.v1.Service/Method, or Message.field of pkg.v1.Message.field. It returns "" for texts with a space
// or a URL scheme.
func lastName(s string) string {
	if strings.ContainsAny(s, " :") {
		return ""
	}
	end := len(s)
	for range 2 {
		at := strings.LastIndexAny(s[:end], nameBreaks)
		if at < 0 {
			return s
		}
		end = at
	}
	return s[end+1:]
}

// cutName cuts off the beginning of a qualified name, up to a dot or slash. Texts that are not qualified
// names are cut by cutURL.
func cutName(s string, width int) string {
	if lastName(s) == "" {
		return cutURL(s, width)
	}
	for i := range s {
		if i == 0 || !strings.ContainsRune(nameBreaks, rune(s[i-1])) {
			continue
		}
		if short := ellipsis + s[i:]; Cells(short) <= width && len(s[i:]) >= len(lastName(s)) {
			return short
		}
	}
	last := lastName(s)
	if Cells(last) <= width {
		return last
	}
	// The name of a type or method alone is better than parts of it and of its package or service.
	if name := last[strings.LastIndexAny(last, nameBreaks)+1:]; name != "" && name != last && Cells(ellipsis+name) <= width {
		return ellipsis + name
	}
	return cutMiddle(last, width)
}

// cutURL shortens "METHOD URL" by removing the least informative parts first: the query, then the scheme,
// then the beginning of host and path. Other texts are cut by cutMiddle.
func cutURL(s string, width int) string {
	method, url := "", s
	if head, rest, ok := strings.Cut(s, " "); ok {
		method, url = head+" ", rest
	}
	_, bare, ok := strings.Cut(url, "://")
	if !ok {
		return cutMiddle(s, width)
	}
	query := ""
	if path, _, ok := strings.Cut(bare, "?"); ok {
		bare, query = path, "?"+ellipsis
	}
	for _, short := range []string{method + url[:strings.Index(url, "://")+3] + bare + query, method + bare + query} {
		if Cells(short) <= width {
			return short
		}
	}
	for i, r := range bare {
		if short := method + ellipsis + bare[i:] + query; r == '/' && Cells(short) <= width {
			return short
		}
	}
	return cutMiddle(method+bare+query, width)
}
