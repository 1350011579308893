//go:build linux

package main

import (
	"archive/tar"
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessionfs/fs"

	"github.com/stretchr/testify/require"
)

// archived is what an archive says of a file.
type archived struct {
	kind             byte
	mode, size       int64
	modified         time.Time
	uid, gid         int
	user, group      string
	target, checksum string
}

// readArchive returns what is in an archive, and the names in order.
func readArchive(t *testing.T, text string) (map[string]archived, []string) {
	t.Helper()
	files := map[string]archived{}
	var names []string
	for r := tar.NewReader(strings.NewReader(text)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files, names
		}
		require.NoError(t, err)
		sum := sha256.New()
		_, err = io.Copy(sum, r)
		require.NoError(t, err)
		require.NotContains(t, files, h.Name)
		files[h.Name] = archived{h.Typeflag, h.Mode, h.Size, h.ModTime, h.Uid, h.Gid, h.Uname, h.Gname, h.Linkname, string(sum.Sum(nil))}
		names = append(names, h.Name)
	}
}

// What the commands show without a mount is what tar, cat and ls find in a mount of the same store, whole and byte by
// byte, also as a user who has no /dev/fuse.
func TestSameAsTheMount(t *testing.T) {
	for _, options := range []string{"rw", "redact"} {
		t.Run(options, func(t *testing.T) {
			s := commandStore(t)
			if os.Geteuid() == 0 {
				s.user = user{"user", nobody}
			}
			requireFuse(t, s.user)
			s.chown()
			require.Zero(t, s.run("-o", options, s.source, s.mountpoint).code)
			_, mounted := fs.MountAt(s.mountpoint)
			require.True(t, mounted)

			packed := s.exec("tar", "--format=posix", "-C", s.mountpoint, "-c", ".")
			direct := s.withoutFuse("tar", "-s", s.source, "-o", options)
			// Artifacts, which nobody masks, cannot be opened with redact.
			require.Equal(t, strings.Count(packed.stderr, "Permission denied"), strings.Count(direct.stderr, "permission denied"))
			require.Equal(t, packed.code == 0, direct.code == 0, direct.stderr)
			require.Equal(t, options == "rw", direct.code == 0)
			want, _ := readArchive(t, packed.stdout)
			got, _ := readArchive(t, direct.stdout)
			require.Greater(t, len(got), 500)
			require.Equal(t, want, got)

			// The same by name, of what tar does not reach: through links, and what is not listed.
			unlisted := []string{
				"by-id/019d3d9/transcript.md", "by-id/019d3d9/branches/current/context.json", "by-id/019d3d9/branches/ba100fbb/entries.jsonl",
				"by-id/019d3d9/tree/ba100fbb/entry.json", "by-cwd/home/dev/tidetable/latest/header.json",
			}
			if options == "rw" {
				unlisted = append(unlisted, "by-id/019d3d9/secrets.jsonl", "history/search/tide* NOT moon")
			}
			for _, name := range unlisted {
				text, err := s.command("cat", filepath.Join(s.mountpoint, name)).Output()
				require.NoError(t, err, name)
				require.Equal(t, result{0, string(text), ""}, s.here("cat", "-o", options, name), name)
			}
			for _, dir := range []string{"", "recent", "by-id/019d3d9/branches/current/path", "by-id/019d3d9/entries", "sessions"} {
				r := s.exec("env", "LC_ALL=C", "ls", filepath.Join(s.mountpoint, dir))
				require.Equal(t, r, s.here("ls", "-o", options, dir+"/"), dir)
			}
			for name, line := range map[string]string{"append": `{"type":"massage"}`, "labels": "nothing x", "leaf": "nothing"} {
				name = "by-id/019d3d9/" + name
				at := filepath.Join(s.mountpoint, name)
				require.NotZero(t, s.exec("sh", "-c", `case $1 in *leaf) ln -sfn "$2" "$1";; *) echo "$2" > "$1";; esac`, "sh", at, line).code)
				if options == "rw" {
					_, why, _ := strings.Cut(s.exec("cat", filepath.Dir(at)+"/last-error").stdout, ": ")
					require.Equal(t, "sessionfs: "+name+": "+why, s.fed(line+"\n", "write", name).stderr)
				}
			}
			require.Zero(t, s.run("-u", s.mountpoint).code)
		})
	}
}

// withoutFuse runs the program as the store's user, without a /dev/fuse that could be opened where that can be done.
func (s *store) withoutFuse(args ...string) result {
	s.t.Helper()
	if os.Geteuid() != 0 || !mayMount() {
		return s.run(args...)
	}
	return s.inNamespace(`mount -t tmpfs none /dev; mknod -m 666 /dev/null c 1 3; run "$@"`, args...)
}

// Lines take effect as they come; an interrupt leaves what has taken effect, and nothing of the line that is being typed.
func TestWriteInterrupted(t *testing.T) {
	s := commandStore(t)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	cmd := s.command(program, "write", "-s", s.source, "by-id/019d3d9/append")
	cmd.Stdin = r
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	r.Close()
	defer w.Close()
	_, err = w.WriteString(`{"type":"custom","customType":"first","data":1}` + "\n" + `{"type":"custom","customType":"second","data":1}`)
	require.NoError(t, err)
	id := make([]byte, 8)
	_, err = io.ReadFull(out, id) // the first line has taken effect
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.EqualError(t, cmd.Wait(), "signal: interrupt")
	text := s.here("cat", "sessions/*/*_019d3d9*.jsonl").stdout
	require.Contains(t, text, `"customType":"first"`)
	require.NotContains(t, text, `"customType":"second"`)
}
