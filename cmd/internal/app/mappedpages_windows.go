package app

// releasePages does nothing: the system takes the pages of a mapped file back itself.
func releasePages([]byte) {}
