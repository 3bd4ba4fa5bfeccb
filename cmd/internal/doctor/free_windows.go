package doctor

import "golang.org/x/sys/windows"

// freeBytes is what a user may still write to the file system of a folder.
func freeBytes(folder string) (uint64, error) {
	path, err := windows.UTF16PtrFromString(folder)
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(path, &free, nil, nil)
	return free, err
}
