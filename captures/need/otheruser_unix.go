//go:build unix

package need

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// Nobody is the numeric id of the unprivileged user "nobody", and of its group.
const Nobody = 65534

// OtherUser skips the test if it runs as root but cannot start a program as the user nobody, as in a
// container whose user namespace has only one user.
func OtherUser(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	cmd := exec.Command("true")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: Nobody, Gid: Nobody}}
	if err := cmd.Run(); err != nil {
		t.Skipf("root cannot run a program as another user here: allow user %d in the container: %v", Nobody, err)
	}
}
