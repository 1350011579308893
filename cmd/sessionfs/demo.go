package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"time"

	"sessionfs/testdata"
)

// unpackDemo writes the built-in sample store into a private directory and returns its path.
func unpackDemo() (string, error) {
	dir, err := os.MkdirTemp("", "sessionfs-demo-") // mode 0700
	if err != nil {
		return "", refuse(exitSource, "the sample store cannot be unpacked: %s", err)
	}
	if err := unpack(testdata.Demo(), dir); err != nil {
		os.RemoveAll(dir)
		return "", refuse(exitSource, "the sample store cannot be unpacked to %s: %s", dir, err)
	}
	return dir, nil
}

// unpack copies src to dir: directories with mode 0700, files with 0600. The modification time of a session is the
// time of its last entry, so that ls -t lists the newest one first.
func unpack(src iofs.FS, dir string) error {
	return iofs.WalkDir(src, ".", func(name string, d iofs.DirEntry, err error) error {
		target := filepath.Join(dir, filepath.FromSlash(name))
		switch {
		case err != nil:
			return err
		case name == ".":
			return nil
		case d.IsDir():
			return os.Mkdir(target, 0o700)
		case !d.Type().IsRegular():
			return fmt.Errorf("%s is neither a file nor a directory", name)
		}
		data, err := iofs.ReadFile(src, name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(target, data, 0o600); err != nil {
			return err
		}
		if r, err := gzip.NewReader(bytes.NewReader(data)); err == nil { // an archived session
			if data, err = io.ReadAll(r); err != nil {
				return err
			}
		}
		if written, ok := lastWritten(data); ok {
			return os.Chtimes(target, written, written)
		}
		return nil
	})
}

// lastWritten returns the timestamp in the last line of a session file.
func lastWritten(data []byte) (time.Time, bool) {
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	var last struct {
		Timestamp time.Time `json:"timestamp"`
	}
	err := json.Unmarshal(lines[len(lines)-1], &last)
	return last.Timestamp, err == nil && !last.Timestamp.IsZero()
}
