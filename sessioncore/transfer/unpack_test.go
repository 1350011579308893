package transfer

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// backupOf returns a tar archive as tar makes it of a directory. A member is its name, its type, and its content or the
// target of a link.
func backupOf(t *testing.T, members ...[3]any) string {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, m := range members {
		name := m[0].(string)
		typ := byte(m[1].(rune))
		text := m[2].(string)
		h := &tar.Header{Name: name, Typeflag: typ, Mode: 0o600}
		if typ != tar.TypeReg {
			h.Linkname = text
			text = ""
		}
		h.Size = int64(len(text))
		require.NoError(t, w.WriteHeader(h))
		_, err := io.WriteString(w, text)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return out.String()
}

func dirMember(name string) [3]any        { return [3]any{name, tar.TypeDir, ""} }
func fileMember(name, text string) [3]any { return [3]any{name, tar.TypeReg, text} }

// TestBackups: a tar archive of an agent directory is imported as the directory is, compressed or not.
// Links and devices in it are left out, and names that lead elsewhere refuse all.
func TestBackups(t *testing.T) {
	session := headerOf("x", "/w") + strings.Replace(line, `"one"`, `[{"type":"image","data":"blob:sha256:`+hashOf("i")+`"}]`, 1)
	want := map[string]string{"sessions/p/x.jsonl": session, "sessions/p/x/0.log": "log"}
	whole := backupOf(t, dirMember("./"), dirMember("./sessions/"), dirMember("./sessions/p/"),
		fileMember("./sessions/p/x.jsonl", session), dirMember("./sessions/p/x/"), fileMember("./sessions/p/x/0.log", "log"),
		fileMember("./cache/y.jsonl", "no session"))
	x := fileMember("sessions/p/x.jsonl", session)
	log := fileMember("sessions/p/x/0.log", "log")
	for name, c := range map[string]struct {
		archive string
		said    string // "" for a session that is new
		want    map[string]string
	}{
		"as tar makes it":  {archive: whole, want: want},
		"compressed":       {archive: packed(t, whole), want: want},
		"compressed twice": {archive: packed(t, packed(t, whole)), said: "refused it is neither "},
		"without directories": {
			archive: backupOf(t, x, log), want: want,
		},
		"links and devices": {
			archive: backupOf(t, [3]any{"sessions/p/l.jsonl", tar.TypeSymlink, "/etc/passwd"}, x, log,
				[3]any{"sessions/p/x/dev", tar.TypeChar, ""}, [3]any{"sessions/p/x/pipe", tar.TypeFifo, ""},
				[3]any{"sessions/p/x/passwd", tar.TypeLink, "/etc/passwd"}, [3]any{"sessions/p/x/up", tar.TypeLink, "../../etc/passwd"}),
			want: want,
		},
		"a directory that is a link": {
			archive: backupOf(t, [3]any{"sessions/q", tar.TypeSymlink, "/tmp"}, fileMember("sessions/q/x.jsonl", session)), want: map[string]string{"sessions/q/x.jsonl": session},
		},
		"two names of one file": {
			archive: backupOf(t, x, log, [3]any{"sessions/p/x/1.log", tar.TypeLink, "sessions/p/x/0.log"}),
			want:    map[string]string{"sessions/p/x.jsonl": session, "sessions/p/x/0.log": "log", "sessions/p/x/1.log": "log"},
		},
		"the last one counts": {archive: backupOf(t, fileMember("sessions/p/x.jsonl", "old"), x, log), want: want},
		"a name that leads elsewhere": {
			archive: backupOf(t, x, fileMember("../x.jsonl", session)), said: "refused it is neither ",
		},
		"an absolute name": {archive: backupOf(t, fileMember("/sessions/p/x.jsonl", session)), said: "refused it is neither "},
		"cut short":        {archive: whole[:len(whole)-1024], said: "refused it is neither "},
		"cut in a file":    {archive: whole[:2048], said: "refused it is neither "},
		"no session":       {archive: backupOf(t, fileMember("a.txt", "text")), said: "refused no session is in it"},
		"a control character": {
			archive: backupOf(t, x, log, fileMember("sessions/p/\x1b[2J.jsonl", session)), said: "refused its name has a control character", want: want,
		},
		"a session's directory of a mount": {
			archive: backupOf(t, fileMember("x/context.json", "{}"), fileMember("x/header.json", "{}"), fileMember("x/problems.jsonl", "")),
			said:    "refused it is a session's directory of a mount",
		},
		"sessions of a mount": {
			archive: backupOf(t, x, fileMember("sessions/p/x/context.json", "{}"), fileMember("sessions/p/x/header.json", "{}"),
				fileMember("sessions/p/x/artifacts/0.log", "log"), [3]any{"recent/x", tar.TypeSymlink, "../sessions/p/x"}),
			want: want,
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "backup")
			require.NoError(t, os.WriteFile(path, []byte(c.archive), 0o600))
			s := newStore(t)
			said := strings.Join(s.take(path), "\n")
			if c.said != "" {
				require.Contains(t, said, c.said)
			}
			if c.want == nil {
				require.Empty(t, all(t, s.top))
				return
			}
			require.Contains(t, said, "new sessions/")
			require.Equal(t, c.want, all(t, s.top))
		})
	}
}

// TestCompressedBomb: a compressed archive that would be much larger than its file ends with an error.
func TestCompressedBomb(t *testing.T) {
	defer func(free int64) { freeTotal = free }(freeTotal)
	freeTotal = 1 << 20
	path := filepath.Join(t.TempDir(), "x.tgz")
	bomb := packed(t, backupOf(t, fileMember("sessions/p/x.jsonl", headerOf("x", "/w")+strings.Repeat(" ", 4<<20))))
	require.NoError(t, os.WriteFile(path, []byte(bomb), 0o600))
	s := newStore(t)
	require.Contains(t, s.take(path)[0], errBomb.Error())
	require.Empty(t, all(t, s.top))
}

// TestBackupOnce: a backup's file does not replace a session of its name, also if it is shorter or another one.
func TestBackupOnce(t *testing.T) {
	s := newStore(t)
	path := filepath.Join(t.TempDir(), "x.tar")
	for _, c := range [][2]string{
		{headerOf("x", "/w") + line, "new sessions/p/x.jsonl"},
		{headerOf("x", "/w"), "same sessions/p/x.jsonl"},
		{headerOf("x", "/w") + strings.Replace(line, "one", "six", 1), "refused what is there is another file, and is not replaced"},
	} {
		require.NoError(t, os.WriteFile(path, []byte(backupOf(t, fileMember("sessions/p/x.jsonl", c[0]))), 0o600))
		require.Equal(t, []string{c[1]}, s.take(path))
		require.Equal(t, map[string]string{"sessions/p/x.jsonl": headerOf("x", "/w") + line}, all(t, s.top))
	}
}
