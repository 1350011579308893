package clients

import (
	"fmt"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// maxBreadcrumb bounds the size of a breadcrumb, in bytes: two paths, and what newer clients add.
const maxBreadcrumb = 16 << 10

// ReadBreadcrumb returns the path of the session file that the breadcrumb in the file name contains. A breadcrumb has
// two lines, the working directory and the session file; newer clients write more (docs/format.md, Breadcrumbs). The
// error wraps ErrNotFound if the file is not a breadcrumb; errors of the storage are returned as they are.
func ReadBreadcrumb(files storage.Files, name string) (file string, err error) {
	text, _, err := readBreadcrumb(files, name)
	if err != nil {
		return "", err
	}
	lines := strings.Split(rawjson.TrimSpace(strings.TrimPrefix(text, "\xEF\xBB\xBF")), "\n")
	if len(lines) < 2 {
		return "", fmt.Errorf("%w: a breadcrumb without a second line", sessioncore.ErrNotFound)
	}
	return lines[1], nil
}

// readBreadcrumb returns the content of the file of a breadcrumb, and its token.
func readBreadcrumb(files storage.Files, name string) (string, storage.Token, error) {
	obj, err := files.Open(name)
	if err != nil {
		return "", storage.Token{}, err
	}
	defer obj.Close()
	st, err := obj.Stat()
	if err != nil {
		return "", storage.Token{}, err
	}
	if st.Size > maxBreadcrumb {
		return "", storage.Token{}, fmt.Errorf("%w: a breadcrumb of %d bytes", sessioncore.ErrNotFound, st.Size)
	}
	text := make([]byte, st.Size)
	err = storage.ReadFull(obj, text, 0)
	return string(text), st.Token, err
}
