package project

import (
	"io/fs"

	"golang.org/x/sys/windows"
)

// ownedByUser reports whether a file or folder belongs to the user, the administrators or the system.
func ownedByUser(path string, _ fs.FileInfo) bool {
	sd, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return false
	}
	owner, _, err := sd.Owner()
	if err != nil || owner == nil {
		return false
	}
	if owner.IsWellKnown(windows.WinBuiltinAdministratorsSid) || owner.IsWellKnown(windows.WinLocalSystemSid) {
		return true
	}
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	return err == nil && owner.Equals(user.User.Sid)
}

// writableByOthers returns false: on Windows, files have no mode bits. They inherit the permissions of
// their folder, which Find requires to belong to the user.
func writableByOthers(fs.FileInfo) bool { return false }
