package transfer

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	zst "github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	_ "sessionfs/sessioncore/agents/all" // whose sessions are imported
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/secrets"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
	"sessionfs/sessioncore/writer"
)

func headerOf(id, cwd string) string {
	return fmt.Sprintf(`{"type":"session","version":3,"id":"%s","timestamp":"2026-02-16T10:20:30.000Z","cwd":"%s"}`+"\n", id, cwd)
}

const (
	line  = `{"type":"message","id":"a","parentId":null,"timestamp":"2026-02-16T10:21:00.000Z","message":{"role":"user","content":"one"}}` + "\n"
	line2 = `{"type":"message","id":"b","parentId":"a","timestamp":"2026-02-16T10:22:00.000Z","message":{"role":"user","content":"two"}}` + "\n"
)

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// image is an entry that refers to a blob.
func image(hash string) string {
	return `{"type":"message","id":"i","parentId":"a","timestamp":"2026-02-16T10:23:00.000Z",` +
		`"message":{"role":"user","content":[{"type":"image","data":"blob:sha256:` + hash + `"}]}}` + "\n"
}

// codexText is a session of Codex.
const codexText = `{"timestamp":"2026-02-16T10:20:30.000Z","type":"session_meta","payload":{"id":"x","cwd":"/w"}}` + "\n" +
	`{"timestamp":"2026-02-16T10:20:31.000Z","type":"response_item","payload":{"type":"message","role":"user",` +
	`"content":[{"type":"input_text","text":"one"}]}}` + "\n"

func zstd(t *testing.T, text string) string {
	w, err := zst.NewWriter(nil)
	require.NoError(t, err)
	return string(w.EncodeAll([]byte(text), nil))
}

func packed(t *testing.T, text string) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.String()
}

// put makes files in a directory.
func put(t *testing.T, top string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		sessiontest.WriteFile(t, filepath.Join(top, name), text)
	}
}

// all returns the files in a directory.
func all(t *testing.T, top string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(top, func(file string, item fs.DirEntry, err error) error {
		if err != nil || item.IsDir() {
			return err
		}
		text, err := os.ReadFile(file)
		name, _ := filepath.Rel(top, file)
		files[name] = string(text)
		return err
	}))
	return files
}

// store is an agent directory into which sessions are imported.
type store struct {
	t   *testing.T
	top string
	im  *Importer
}

// blobsIn is Blobs in a directory.
type blobsIn struct{ storage.Storage }

func (b blobsIn) Size(hash string) (int64, error) {
	st, err := b.Stat(hash)
	return st.Size, err
}

func (b blobsIn) Copy(hash string, from io.ReaderAt, size int64) error {
	_, err := b.Replace(hash, storage.Replacement{Write: func(out io.Writer) error {
		sum := sha256.New()
		_, err := io.Copy(io.MultiWriter(out, sum), io.NewSectionReader(from, 0, size))
		if hex.EncodeToString(sum.Sum(nil)) != hash {
			return fs.ErrInvalid
		}
		return err
	}})
	return err
}

func open(t *testing.T, path string) *dir.Storage {
	t.Helper()
	require.NoError(t, os.MkdirAll(path, 0o755))
	files, err := dir.Open(path)
	require.NoError(t, err)
	return files
}

func newStore(t *testing.T, files map[string]string) *store {
	t.Helper()
	top := t.TempDir()
	put(t, top, files)
	live := open(t, filepath.Join(top, "sessions"))
	sessions := sessioncore.NewStore(live)
	t.Cleanup(sessions.Close)
	list := listing.New(sessions, live.Path())
	return &store{t, top, &Importer{
		Files: live, Writer: writer.New(sessions, writer.Options{Journal: live, Root: live.Path(), Scope: list.Scope}), Listing: list,
		Blobs: blobsIn{open(t, filepath.Join(top, "blobs"))},
	}}
}

// take imports what is at a path, and returns what is said of each session.
func (s *store) take(paths ...string) (said []string) {
	s.t.Helper()
	temporary := s.t.TempDir()
	from, err := Open(temporary)
	require.NoError(s.t, err)
	defer func() {
		from.Close()
		require.Empty(s.t, all(s.t, temporary))
	}()
	for _, path := range paths {
		require.NoError(s.t, from.Add(s.t.Context(), path, nil))
	}
	for _, f := range from.Found {
		r, err := s.im.Import(s.t.Context(), f)
		require.NoError(s.t, err)
		text := string(r.Outcome) + " " + r.Path
		if r.Err != nil {
			text = string(r.Outcome) + " " + r.Err.Error()
		}
		if r.Partly {
			text = "partly " + text
		}
		said = append(said, strings.Join(append([]string{text}, r.Notes...), "; "))
	}
	return said
}

// TestPlaces: where sessions are found, and where they go.
func TestPlaces(t *testing.T) {
	one, two := headerOf("one", "/w")+line, headerOf("two", "/w")+line
	flat := strings.Replace(strings.Replace(one, `"session"`, `"session_header"`, 1), `"one"`, `"flat"`, 1)
	for _, c := range []struct {
		name  string
		there map[string]string // in the store
		files map[string]string // elsewhere
		path  string            // of what is imported, below elsewhere
		to    string
		want  []string // beginnings of what is said
		gets  string   // a file that is in the store then
	}{
		{"a file", nil, map[string]string{"x.jsonl": one}, "x.jsonl", "", []string{"new sessions/--w--/x.jsonl"}, "sessions/--w--/x.jsonl"},
		{"a file, where its cwd is", map[string]string{"sessions/-w/y.jsonl": two}, map[string]string{"x.jsonl": one}, "x.jsonl", "",
			[]string{"new sessions/-w/x.jsonl"}, "sessions/-w/x.jsonl"},
		{"a file without a cwd", nil, map[string]string{"x.jsonl": headerOf("x", "")}, "x.jsonl", "",
			[]string{"refused its header names no working directory"}, ""},
		{"a file, to", nil, map[string]string{"x.jsonl": headerOf("x", "")}, "x.jsonl", "p/q", []string{"new sessions/p/q/x.jsonl"}, "sessions/p/q/x.jsonl"},
		{"of operator", nil, map[string]string{"x.jsonl": flat}, "x.jsonl", "", []string{"new sessions/x.jsonl"}, "sessions/x.jsonl"},
		{"an archive", nil, map[string]string{"x.jsonl.gz": packed(t, one)}, "x.jsonl.gz", "", []string{"new sessions/--w--/x.jsonl"},
			"sessions/--w--/x.jsonl"},
		{"a directory", nil, map[string]string{"d/e/x.jsonl": one, "y.jsonl": two}, "", "",
			[]string{"new sessions/--w--/x.jsonl", "new sessions/--w--/y.jsonl"}, "sessions/--w--/y.jsonl"},
		{"an agent directory", nil, map[string]string{"a/sessions/p/x.jsonl": one, "a/archive/sessions/q/y.jsonl.gz": packed(t, two),
			"a/log.jsonl": "{}\n", "a/cache/log.jsonl": "{}\n"}, "a", "",
			[]string{"new sessions/q/y.jsonl", "new sessions/p/x.jsonl"}, "sessions/q/y.jsonl"},
		{"a file in one", nil, map[string]string{"a/sessions/p/x.jsonl": one}, "a/sessions/p/x.jsonl", "", []string{"new sessions/p/x.jsonl"},
			"sessions/p/x.jsonl"},
		{"one at a depth", nil, map[string]string{"b/home/.omp/agent/sessions/p/x.jsonl": one}, "b", "", []string{"new sessions/p/x.jsonl"},
			"sessions/p/x.jsonl"},
		{"one that is elsewhere", map[string]string{"sessions/q/x.jsonl": one}, map[string]string{"a/sessions/p/x.jsonl": one + line2}, "a", "",
			[]string{"longer sessions/q/x.jsonl"}, "sessions/q/x.jsonl"},
		{"one of another name", map[string]string{"sessions/q/y.jsonl": one + line2}, map[string]string{"x.jsonl": one}, "x.jsonl", "p",
			[]string{"same sessions/q/y.jsonl"}, "sessions/q/y.jsonl"},
		{"twice in one run", nil, map[string]string{"a/sessions/p/x.jsonl": one, "b/sessions/q/x.jsonl": one + line2}, "", "",
			[]string{"new sessions/p/x.jsonl", "longer sessions/p/x.jsonl"}, "sessions/p/x.jsonl"},
		{"locks and temporary files", nil, map[string]string{"sessions/p/x.jsonl": one, "sessions/p/.x.jsonl.lock": "1", "sessions/p/.y.jsonl": two},
			"", "", []string{"new sessions/p/x.jsonl"}, "sessions/p/x.jsonl"},
		{"nothing", nil, nil, "none", "", []string{"refused no such file"}, ""},
		{"another file", nil, map[string]string{"x.txt": one}, "x.txt", "", []string{"refused it is neither a session"}, ""},
		{"a name that lies", nil, map[string]string{"x.jsonl": packed(t, one)}, "x.jsonl", "", []string{"refused it does not begin with the header"}, ""},
		{"no conversation", nil, map[string]string{"x.jsonl": `{"type":"user","sessionId":"x"}` + "\n"}, "x.jsonl", "",
			[]string{"refused there is no conversation in it"}, ""},
		{"half a header", nil, map[string]string{"x.jsonl": one[:40]}, "x.jsonl", "", []string{"refused it does not begin with the header"}, ""},
		{"another agent's archive", nil, map[string]string{"x.jsonl.zst": zstd(t, codexText)}, "x.jsonl.zst", "", []string{"new sessions/--w--/"}, ""},
		{"a damaged archive", nil, map[string]string{"x.jsonl.gz": packed(t, one)[:60]}, "x.jsonl.gz", "", []string{"refused "}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, elsewhere := newStore(t, c.there), t.TempDir()
			put(t, elsewhere, c.files)
			s.im.To = c.to
			before := all(t, elsewhere)
			said := s.take(filepath.Join(elsewhere, c.path))
			require.Len(t, said, len(c.want), said)
			for i, want := range c.want {
				require.Contains(t, said[i]+"|", want)
			}
			after := all(t, s.top)
			if c.gets != "" {
				require.Contains(t, after, c.gets)
			} else if strings.HasPrefix(c.want[0], "refused") {
				require.Len(t, after, len(c.there))
			}
			for _, text := range s.take(filepath.Join(elsewhere, c.path)) {
				require.NotRegexp(t, "^(new|longer)", text, "the second time")
			}
			require.Equal(t, after, all(t, s.top))
			require.Equal(t, before, all(t, elsewhere))
		})
	}
}

// TestAlong: what belongs to a session comes with it, and what cannot is said.
func TestAlong(t *testing.T) {
	const picture, other, small = "a picture", "another picture", "a small picture"
	files := map[string]string{
		"sessions/p/x.jsonl": headerOf("x", "/w") + line + image(hashOf(picture)) + image(hashOf("gone")) + image(hashOf(other)) +
			`{"type":"custom","data":"` + hashOf("no reference") + ` blob:sha256:`,
		"sessions/p/x/0.log":          "a log\n",
		"sessions/p/x/local/.hidden":  "hidden\n",
		"sessions/p/x/sub.jsonl":      headerOf("sub", "/w") + image(hashOf(small)) + line[:30],
		"sessions/p/x/data.jsonl":     "{}\n",
		"sessions/p/x/.sub.jsonl.tmp": "temporary",
		"blobs/" + hashOf(picture):    picture,
		"blobs/" + hashOf(other):      "not the other picture",
		"blobs/" + hashOf(small):      small,
	}
	elsewhere := t.TempDir()
	put(t, elsewhere, files)
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(elsewhere, "sessions/p/x/link")))
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(elsewhere, "sessions/q")))
	s := newStore(t, nil)
	said := s.take(elsewhere)
	require.Len(t, said, 2)
	for _, part := range []string{
		"partly new sessions/p/x.jsonl", "link beside it is refused: ", "sub.jsonl beside it: its last line is torn: 30 bytes", "its last line is torn",
		"blob " + hashOf("gone") + " is not to be had: no such file", "blob " + hashOf(other) + " is not to be had",
	} {
		require.Contains(t, said[0], part)
	}
	require.Contains(t, said[1], "refused it is a link")
	want := map[string]string{
		"sessions/p/x.jsonl":     strings.TrimSuffix(files["sessions/p/x.jsonl"], `{"type":"custom","data":"`+hashOf("no reference")+` blob:sha256:`),
		"sessions/p/x/sub.jsonl": strings.TrimSuffix(files["sessions/p/x/sub.jsonl"], line[:30]),
	}
	for _, name := range []string{"sessions/p/x/0.log", "sessions/p/x/local/.hidden", "sessions/p/x/data.jsonl", "blobs/" + hashOf(picture),
		"blobs/" + hashOf(small)} {
		want[name] = files[name]
	}
	require.Equal(t, want, all(t, s.top))

	put(t, s.top, map[string]string{"sessions/p/x/0.log": "another log\n"})
	require.NoError(t, os.Remove(filepath.Join(s.top, "blobs", hashOf(small))))
	said = s.take(filepath.Join(elsewhere, "sessions/p/x.jsonl"))
	require.Contains(t, said[0], "partly same sessions/p/x.jsonl")
	require.Contains(t, said[0], "0.log beside it is refused: "+writer.ErrOther.Error())
	want["sessions/p/x/0.log"] = "another log\n"
	require.Equal(t, want, all(t, s.top), "what was missing is there again")

	rows := newStore(t, nil)
	rows.im.SessionsAlone, rows.im.Blobs = true, nil
	said = rows.take(filepath.Join(elsewhere, "sessions/p/x.jsonl"))
	require.Contains(t, said[0], "4 files beside it are left out")
	require.Contains(t, said[0], "3 blobs are left out: there is no place")
	require.Len(t, all(t, rows.top), 2)

	put(t, elsewhere, map[string]string{"before.jsonl": headerOf("y", "/w") + line, "y.jsonl": headerOf("y", "/w") + strings.Replace(line, "one", "six", 1)})
	require.Equal(t, []string{"new sessions/p/before.jsonl"}, rows.take(filepath.Join(elsewhere, "before.jsonl")))
	for at, want := range map[int64]string{1: "refused " + writer.ErrOther.Error(), 0: "same sessions/p/before.jsonl"} {
		info, err := os.Stat(filepath.Join(elsewhere, "before.jsonl"))
		require.NoError(t, err)
		require.NoError(t, os.Chtimes(filepath.Join(elsewhere, "y.jsonl"), time.Time{}, info.ModTime().Add(time.Duration(at)*time.Second)))
		require.Equal(t, []string{want}, rows.take(filepath.Join(elsewhere, "y.jsonl")), "compared unless it is as large and as old")
	}
}

// bundleOf returns a bundle of the sessions of a store.
func bundleOf(t *testing.T, top string, redacted bool, names ...string) (text string, left []string) {
	t.Helper()
	files := storage.Files(open(t, filepath.Join(top, "sessions")))
	if redacted {
		rules, err := secrets.Read("")
		require.NoError(t, err)
		files = secrets.Mask(files, rules)
	}
	var out bytes.Buffer
	b := &Bundler{Out: tar.NewWriter(&out), Blobs: blobsIn{open(t, filepath.Join(top, "blobs"))}, Redacted: redacted, Masked: map[string]int{},
		Left: func(what string, err error) {
			left = append(left, what+": "+err.Error())
		}}
	for _, name := range names {
		require.NoError(t, b.Add(t.Context(), files, name))
	}
	require.NoError(t, b.Close())
	return out.String(), left
}

// TestBundle: what is bundled is imported as it was, and a masked bundle has no secrets.
func TestBundle(t *testing.T) {
	secret := "ghp" + "_" + "R7tq2LmX9vKc4WzN8bHdY3fJp6sGa1uEoQ5i" // put together here, so that no scanner finds it
	files := map[string]string{
		"sessions/p/x.jsonl":     headerOf("x", "/w") + strings.Replace(line, "one", secret, 1) + image(hashOf("a picture")),
		"sessions/p/y.jsonl":     headerOf("y", "/w") + line + line2[:50],
		"sessions/p/x/0.log":     "a log with " + secret + "\n",
		"sessions/p/x/sub.jsonl": headerOf("sub", "/w") + strings.Replace(line, "one", secret, 1),
		"sessions/p/z.jsonl":     headerOf("z", "/w"),
	}
	from := newStore(t, files)
	put(t, from.top, map[string]string{"blobs/" + hashOf("a picture"): "a picture"})
	bundle := filepath.Join(t.TempDir(), "x.tar")

	text, left := bundleOf(t, from.top, false, "p/x.jsonl", "p/y.jsonl", "p/x.jsonl")
	require.Empty(t, left)
	require.NoError(t, os.WriteFile(bundle, []byte(text), 0o600))
	to := newStore(t, nil)
	require.Equal(t, []string{"new sessions/p/x.jsonl", "new sessions/p/y.jsonl; its last line is torn: 50 bytes left out"}, to.take(bundle))
	want := all(t, from.top)
	delete(want, "sessions/p/z.jsonl")
	want["sessions/p/y.jsonl"] = headerOf("y", "/w") + line
	require.Equal(t, want, all(t, to.top))
	require.Equal(t, []string{"same sessions/p/x.jsonl", "same sessions/p/y.jsonl; its last line is torn: 50 bytes left out"}, to.take(bundle))

	text, left = bundleOf(t, from.top, true, "p/x.jsonl")
	require.Equal(t, []string{"2 files: they cannot be masked"}, left)
	require.NotContains(t, text, secret)
	require.NoError(t, os.WriteFile(bundle, []byte(text), 0o600))
	to = newStore(t, nil)
	require.Equal(t, []string{"new sessions/p/x.jsonl; blob " + hashOf("a picture") + " is not to be had: no such file or directory"}, to.take(bundle))
	require.Len(t, all(t, to.top), 2)

	sources, err := Open(t.TempDir())
	require.NoError(t, err)
	defer sources.Close()
	require.NoError(t, sources.Add(t.Context(), "-", strings.NewReader(text)))
	require.Len(t, sources.Found, 1)
	require.NoError(t, sources.Found[0].Err)
}

// TestInterrupted: an interrupt ends an import between sessions and in the middle of one.
func TestInterrupted(t *testing.T) {
	s, elsewhere := newStore(t, nil), t.TempDir()
	put(t, elsewhere, map[string]string{"sessions/p/x.jsonl": headerOf("x", "/w") + line})
	from, err := Open(t.TempDir())
	require.NoError(t, err)
	defer from.Close()
	require.NoError(t, from.Add(t.Context(), elsewhere, nil))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.im.Import(gone, from.Found[0])
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, from.Add(gone, elsewhere, nil), context.Canceled)
	require.Empty(t, all(t, s.top))
}
