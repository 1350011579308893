package main

import (
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"time"

	"sessionfs/testdata"
)

// unpackDemo writes the built-in sample store into a private directory, whose path it returns.
// Which session is the newest is seen by the time it was modified: the last one in name order.
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

// unpack copies src to dir: directories with mode 0700, files with 0600, each file a little newer than
// the one before it: the kernel's clock ticks too slowly to tell them apart.
func unpack(src iofs.FS, dir string) error {
	written := time.Now()
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
		written = written.Add(time.Millisecond)
		return os.Chtimes(target, written, written)
	})
}
