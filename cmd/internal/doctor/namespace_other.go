//go:build !linux

package doctor

import "context"

// namespaces are Linux's.
func (m Machine) namespaces(context.Context) []Check {
	return ok("namespaces", "none on this system: only Linux has what a transparent capture needs")
}
