//go:build unix

package need

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// Nobody is the user and group that has no rights.
const Nobody = 65534

// OtherUser needs, for root, the right to run a program as nobody: a container
// whose user namespace has one user alone cannot.
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
