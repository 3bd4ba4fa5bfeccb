package doctor

import (
	"context"
	"runtime"
)

// transparent tries what `capture --transparent` does, with nothing to record.
func (m Machine) transparent(ctx context.Context) []check {
	const name = "transparent capture"
	if runtime.GOOS != "linux" {
		return ok(name, "only Linux has what it needs; --reverse works without")
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	if err := m.Transparent(ctx); err != nil {
		return warn(name, err.Error(),
			"see kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns, user.max_user_namespaces, the module nf_tables, or the container's seccomp profile; --reverse works without")
	}
	return ok(name, "a command runs in a network namespace of its own")
}
