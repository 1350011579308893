package ledger

import (
	"io/fs"
	"os"
	"syscall"
)

// isOwn reports whether a file or directory belongs to this user.
func isOwn(info fs.FileInfo) bool {
	st, isKnown := info.Sys().(*syscall.Stat_t)
	return isKnown && int(st.Uid) == os.Geteuid()
}
