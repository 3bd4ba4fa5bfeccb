package doctor

import (
	"context"
	"os"
	"os/exec"
	"syscall"
)

// namespaces tries what a transparent mode needs: a network of one's own
// without being root.
func (m Machine) namespaces(ctx context.Context) []Check {
	const name = "namespaces"
	const instead = "programs that ignore proxies cannot be captured transparently; --reverse works without"
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	program, err := m.lookPath("true")
	if err != nil {
		return warn(name, "not tried: there is no 'true' in the PATH", "")
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	all := ok(name, "a user and network namespace can be made")
	if err := cmd.Run(); err != nil {
		all = warn(name, "no user and network namespace: "+err.Error(),
			"see kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns, user.max_user_namespaces, or the container's seccomp profile; "+instead)
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		all = append(all, warn("tun device", "there is no /dev/net/tun", "modprobe tun, or pass the device to the container; "+instead)...)
	} else {
		all = append(all, ok("tun device", "/dev/net/tun is there")...)
	}
	if _, err := m.lookPath("nft"); err != nil {
		return append(all, ok("nftables", "no nft command: only of use to redirect connections in the kernel")...)
	}
	return append(all, ok("nftables", "nft is installed")...)
}
