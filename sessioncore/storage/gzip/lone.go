package gzip

import (
	"fmt"
	"io"
	"strings"

	"sessionfs/sessioncore/storage"
)

// Packed returns the name of a file without the ending of its format of compression; ok is false for
// another name.
func Packed(name string) (plain string, ok bool) {
	f := formatOf(name)
	if f == nil {
		return name, false
	}
	return strings.TrimSuffix(name, f.ending), true
}

// formatOf returns the format of a compressed file by its name, or nil.
func formatOf(name string) *format {
	for _, f := range []*format{gzipped, zstandard} {
		if strings.HasSuffix(name, f.ending) {
			return f
		}
	}
	return nil
}

// Unpack writes the text of a compressed file to out, in little memory. The error is EFBIG for a file that
// unpacks to more than a session may, and storage.ErrNotRegular for one that is not compressed as its name
// says; out has a part of the text then.
func Unpack(name string, obj storage.Object, out io.Writer) error {
	f := formatOf(name)
	if f == nil {
		return fmt.Errorf("%w: %s", storage.ErrNotRegular, name)
	}
	st, err := obj.Stat()
	if err != nil {
		return err
	}
	err = f.check(name, obj)
	if err != nil {
		return err
	}
	_, err = f.unpackTo(out, obj, st.Token, f.limitOf(st.Size))
	return err
}
