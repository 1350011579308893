package clients

import (
	"bytes"
	"fmt"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// maxBreadcrumb is how large a breadcrumb may be, in bytes: two paths, and what newer clients add.
const maxBreadcrumb = 16 << 10

// ReadBreadcrumb returns the path of the session file that a breadcrumb of the client names (docs/format.md,
// Breadcrumbs: two lines, the working directory and the file; what follows is of newer clients). The error wraps
// ErrNotFound where it is no breadcrumb, or what the storage says.
func ReadBreadcrumb(files storage.Storage, name string) (file string, err error) {
	obj, err := files.Open(name)
	if err != nil {
		return "", err
	}
	defer obj.Close()
	st, err := obj.Stat()
	if err != nil {
		return "", err
	}
	if st.Size > maxBreadcrumb {
		return "", fmt.Errorf("%w: a breadcrumb of %d bytes", sessioncore.ErrNotFound, st.Size)
	}
	text := make([]byte, st.Size)
	if err := storage.ReadFull(obj, text, 0); err != nil {
		return "", err
	}
	lines := strings.Split(rawjson.TrimSpace(string(bytes.TrimPrefix(text, []byte("\xEF\xBB\xBF")))), "\n")
	if len(lines) < 2 {
		return "", fmt.Errorf("%w: a breadcrumb without a second line", sessioncore.ErrNotFound)
	}
	return lines[1], nil
}
