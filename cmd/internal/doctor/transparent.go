package doctor

import (
	"context"
	"runtime"
)

// transparent checks that 'capture --transparent' works, by running a command that does nothing in a
// network namespace.
func (m Machine) transparent(ctx context.Context) []check {
	const name = "transparent capture"
	if runtime.GOOS != "linux" {
		return ok(name, "not supported on this system, only on Linux; use 'unwire capture --reverse URL'")
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	if err := m.Transparent(ctx); err != nil {
		return warn(name, err.Error(),
			"check kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns, user.max_user_namespaces, the module nf_tables, or the container's seccomp profile; or use 'unwire capture --reverse URL'")
	}
	return ok(name, "works: a test command ran in its own network namespace")
}
