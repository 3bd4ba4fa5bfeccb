package value

import "slices"

// Forms counts the payloads of a field that have a recognizable format, such as UUID.
type Forms struct {
	// UUID is the number of values that are UUIDs with dashes.
	UUID int64 `json:"uuid,omitempty" pb:"1"`

	// URL is the number of values that are http or https URLs.
	URL int64 `json:"url,omitempty" pb:"2"`

	// JSON is the number of payloads that begin and end with braces or brackets. Their content is not checked.
	JSON int64 `json:"json,omitempty" pb:"3"`

	// Time is the number of values that are times in RFC 3339.
	Time int64 `json:"time,omitempty" pb:"4"`

	// Files has the number of payloads by file format. It is nil if there are none.
	Files map[string]int64 `json:"files,omitempty" pb:"5"`
}

// Count adds payload p, which must not be empty, to the counts. It reports whether p has a file format.
func (f *Forms) Count(p []byte) (file bool) {
	switch c := p[0]; c {
	case 'h':
		if len(p) > 8 && (string(p[:7]) == "http://" || string(p[:8]) == "https://") {
			f.URL++
		}
	// Validating JSON would be too slow for every payload of a capture.
	case '{', '[':
		// The closing bracket's code is that of the opening one plus 2.
		if len(p) > 1 && p[len(p)-1] == c+2 {
			f.JSON++
		}
	default:
		switch n := len(p); {
		case n == 36 && isUUID(p):
			f.UUID++
		case n >= 20 && n <= 35 && isTime(p):
			f.Time++
		}
	}

	if format := FileFormat(p); format != "" {
		if f.Files == nil {
			f.Files = map[string]int64{}
		}
		f.Files[format]++
		return true
	}

	return false
}

// isUUID reports whether p, which has 36 bytes, is a UUID with dashes.
func isUUID(p []byte) bool {
	if p[8] != '-' || p[13] != '-' || p[18] != '-' || p[23] != '-' {
		return false
	}
	digits := true
	for _, part := range [...][]byte{p[:8], p[9:13], p[14:18], p[19:23], p[24:36]} {
		for _, c := range part {
			digits = digits && isHex[c]
		}
	}
	return digits
}

// isHex is true for hexadecimal digits.
var isHex = func() (t [256]bool) {
	for _, c := range "0123456789abcdefABCDEF" {
		t[c] = true
	}
	return t
}()

// isTime reports whether p begins like 2006-01-02T15:04:05. Anything may follow the seconds.
func isTime(p []byte) bool {
	const form = "0000-00-00T00:00:00"
	for i := range form {
		if digit := p[i] >= '0' && p[i] <= '9'; (form[i] == '0') != digit || !digit && p[i] != form[i] {
			return false
		}
	}
	return true
}

// Merge adds the counts of o to f.
func (f *Forms) Merge(o *Forms) {
	f.UUID += o.UUID
	f.URL += o.URL
	f.JSON += o.JSON
	f.Time += o.Time
	if len(o.Files) > 0 && f.Files == nil {
		f.Files = map[string]int64{}
	}
	for format, n := range o.Files {
		f.Files[format] += n
	}
}

// FileCount returns the number of payloads that have a file format.
func (f *Forms) FileCount() (sum int64) {
	for _, n := range f.Files {
		sum += n
	}
	return sum
}

// Valid reports whether n payloads can have these counts. It checks counts that were read from a file.
func (f *Forms) Valid(n int64) bool {
	for format, count := range f.Files {
		if count < 1 || count > n || !slices.ContainsFunc(fileFormats[:], func(x fileFormat) bool { return x.name == format }) {
			return false
		}
	}
	for _, count := range [...]int64{f.UUID, f.URL, f.JSON, f.Time} {
		if count < 0 || count > n {
			return false
		}
	}
	return f.UUID+f.URL+f.JSON+f.Time <= n && f.FileCount() <= n
}

// Of returns a description of the format that all n payloads have, or "".
func (f *Forms) Of(n int64) string {
	for _, form := range [...]struct {
		count int64
		name  string
	}{{f.UUID, "a UUID"}, {f.URL, "a URL"}, {f.JSON, "JSON by its ends"}, {f.Time, "a time as in RFC 3339"}} {
		if n > 0 && form.count == n {
			return form.name
		}
	}
	for format, count := range f.Files {
		if n > 0 && count == n {
			return format
		}
	}
	return ""
}
