package storage

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// OpenAfter opens a path as OpenRegular does, or as ReadNamed, with another function that looks at the path first.
func OpenAfter(stat func(path string) (fs.FileInfo, error), path string, isNamed bool) (*os.File, error) {
	flags := os.O_RDONLY | unfollowed
	if isNamed {
		flags &^= unix.O_NOFOLLOW
	}
	file, _, err := openAfter(stat, path, flags)
	return file, err
}
