package tools

// Mappable returns the requests that rows may map, with their fields.
func Mappable() map[string][]string { return mappable }
