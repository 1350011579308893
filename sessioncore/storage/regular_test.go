//go:build linux

package storage_test

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// TestRegular: of what may stand at a path, only a regular file of a bounded size is read, and nothing keeps the reader waiting. A
// link is followed only to a file that the user has named.
func TestRegular(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(at("file"), []byte("text"), 0o600))
	require.NoError(t, os.WriteFile(at("large"), []byte(strings.Repeat("x", 2<<10+1)), 0o600))
	require.NoError(t, os.Truncate(at("large"), 1<<40)) // sparse
	require.NoError(t, os.WriteFile(at("full"), []byte(strings.Repeat("x", 2<<10)), 0o600))
	require.NoError(t, unix.Mkfifo(at("pipe"), 0o600))
	require.NoError(t, os.Mkdir(at("dir"), 0o700))
	for name, target := range map[string]string{"link": "file", "to pipe": "pipe", "to zero": "/dev/zero", "loop": "loop", "to none": "none"} {
		require.NoError(t, os.Symlink(target, at(name)))
	}
	const limit = 2 << 10
	for name, read := range map[string]func(string, int64) ([]byte, error){"regular": storage.ReadRegular, "named": storage.ReadNamed} {
		text, err := read(at("file"), limit)
		require.NoError(t, err)
		require.Equal(t, "text", string(text))
		text, err = read(at("full"), limit)
		require.NoError(t, err)
		require.Len(t, text, limit)
		for _, odd := range []string{"large", "pipe", "dir", "to pipe", "to zero", "loop"} {
			_, err = read(at(odd), limit)
			require.ErrorIs(t, err, storage.ErrNotRegular, name+" "+odd)
			require.ErrorContains(t, err, "it is not a file of at most 2 KiB")
		}
		_, err = read(at("none"), limit)
		require.ErrorIs(t, err, fs.ErrNotExist)
		_, err = read("/proc/self/status", 2)
		require.ErrorIs(t, err, storage.ErrNotRegular, "its size is 0")
	}
	_, err := storage.ReadRegular(at("link"), limit)
	require.ErrorIs(t, err, storage.ErrNotRegular)
	text, err := storage.ReadNamed(at("link"), limit)
	require.NoError(t, err)
	require.Equal(t, "text", string(text))

	for _, odd := range []string{"pipe", "link", "to none"} {
		_, err = storage.CreateRegular(at(odd))
		require.ErrorIs(t, err, storage.ErrNotRegular, odd)
	}
	require.NoFileExists(t, at("none"))
	made, err := storage.CreateRegular(at("new"))
	require.NoError(t, err)
	require.NoError(t, made.Close())
	_, err = storage.OpenDir(at("pipe"))
	require.ErrorIs(t, err, unix.ENOTDIR)
}

// TestRegularSwapped: the file that is at a path when it is opened counts, and not the one before it.
func TestRegularSwapped(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	swapped := filepath.Join(dir, "swapped")
	secret := filepath.Join(dir, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	require.NoError(t, os.WriteFile(file, []byte("text"), 0o600))
	require.NoError(t, os.Symlink(secret, swapped))
	stop := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, file, unix.AT_FDCWD, swapped, unix.RENAME_EXCHANGE)
			}
		}
	}()
	read := 0
	for range 20_000 { // so often that some reads meet the link
		text, err := storage.ReadRegular(file, 1<<10)
		if err != nil {
			require.ErrorIs(t, err, storage.ErrNotRegular)
			continue
		}
		read++
		require.Equal(t, "text", string(text))
	}
	close(stop)
	<-stopped
	require.Positive(t, read)
}

// TestRegularSwappedKind: a file of another kind that is put at the path after the look at it is refused once it is open.
func TestRegularSwappedKind(t *testing.T) {
	swaps := map[string]func(path string) error{
		"a pipe":           func(path string) error { return unix.Mkfifo(path, 0o600) },
		"a directory":      func(path string) error { return os.Mkdir(path, 0o700) },
		"a link to a file": func(path string) error { return os.Symlink("other", path) },
		"a link to a pipe": func(path string) error { return os.Symlink("pipe", path) },
		"a device":         func(path string) error { return os.Symlink("/dev/null", path) },
		"a socket": func(path string) error {
			listener, err := net.Listen("unix", path)
			if err == nil {
				t.Cleanup(func() { _ = listener.Close() })
			}
			return err
		},
	}
	for swap, put := range swaps {
		for _, isNamed := range []bool{false, true} {
			t.Run(fmt.Sprint(swap, isNamed), func(t *testing.T) {
				t.Chdir(t.TempDir()) // the path of a socket is short
				require.NoError(t, os.WriteFile("file", []byte("text"), 0o600))
				require.NoError(t, os.WriteFile("other", []byte("text"), 0o600))
				require.NoError(t, unix.Mkfifo("pipe", 0o600))
				look := func(path string) (fs.FileInfo, error) {
					info, err := os.Stat(path)
					require.NoError(t, os.Remove(path))
					require.NoError(t, put(path))
					return info, err
				}
				file, err := storage.OpenAfter(look, "file", isNamed)
				if isNamed && swap == "a link to a file" {
					require.NoError(t, err)
					require.NoError(t, file.Close())
					return
				}
				require.ErrorIs(t, err, storage.ErrNotRegular)
				require.Nil(t, file)
			})
		}
	}
}

// TestDeviceIsNotOpened: a path at which a device was seen is not opened, as that may have an effect.
func TestDeviceIsNotOpened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte("text"), 0o600))
	device := func(string) (fs.FileInfo, error) { return os.Stat("/dev/null") }
	_, err := storage.OpenAfter(device, path, true)
	require.ErrorIs(t, err, storage.ErrNotRegular)
}
