package doctor

import "golang.org/x/sys/windows"

// freeBytes returns the number of bytes that a user can still write to the file system with the folder.
func freeBytes(folder string) (uint64, error) {
	path, err := windows.UTF16PtrFromString(folder)
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(path, &free, nil, nil)
	return free, err
}
