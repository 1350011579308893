//go:build !linux

package access

import (
	"io/fs"

	"sessionfs/sessioncore/storage"
)

// walk refuses: what it needs is there on Linux only.
func walk(string, func(at string, o *object, id storage.Token, last bool) error) error {
	return fs.ErrPermission
}
