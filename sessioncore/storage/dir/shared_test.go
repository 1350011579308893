//go:build linux

package dir

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

// TestSharedIsDetected: a directory counts as shared by its file system, or as it was set, also below it; a missing one does not.
func TestSharedIsDetected(t *testing.T) {
	shared := func(s *Storage, how Sharing) [2]bool {
		s.SetSharing(how)
		sub, err := s.Sub("scope")
		require.NoError(t, err)
		return [2]bool{s.Shared(), sub.Shared()}
	}
	for _, local := range []string{t.TempDir(), "/dev/shm"} {
		s, err := Open(local)
		require.NoError(t, err)
		assert.Equal(t, [2]bool{false, false}, shared(s, SharingDetected), local)
		assert.Equal(t, [2]bool{true, false}, shared(s, SharingAlways), "one that is not there is not")
	}

	behind := t.TempDir()
	mounted := t.TempDir()
	out, err := exec.Command("bindfs", behind, mounted).CombinedOutput()
	if err != nil {
		t.Skipf("bindfs: %v: %s", err, out)
	}
	defer func() { _ = exec.Command("fusermount3", "-u", mounted).Run() }()
	s, err := Open(mounted)
	require.NoError(t, err)
	require.NoError(t, s.MkdirAll("scope"))
	assert.Equal(t, [2]bool{true, true}, shared(s, SharingDetected))
	assert.Equal(t, [2]bool{false, false}, shared(s, SharingNever))
}

// over writes text into a file at an offset, as a machine does that believes this to be the end of the file.
func over(t *testing.T, s *Storage, text string, at int64) {
	t.Helper()
	f, err := os.OpenFile(pathOf(s, "x.jsonl"), os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte(text), at)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// TestSharedAppend: between our look at the end of the file and the end of our write, another machine appends.
func TestSharedAppend(t *testing.T) {
	const (
		one   = "one\n"
		data  = "{ours a}\n{ours b}\n{ours c}\n"
		short = "{theirs}\n"
		long  = "{theirs, which is a line that is longer than all of ours together}\n"
	)
	type write struct {
		text string
		at   int64
	}
	const end = int64(len(one)) // as we see it
	const lineSize = int64(len("{ours a}\n"))
	blank := strings.Repeat(" ", int(lineSize)-1) + "\n"
	for name, test := range map[string]struct {
		writes  []write // ours as well
		cut     int64   // the file's size in the end, 0 for all
		isLocal bool
		want    string
		isStale bool
	}{
		"nobody": {
			writes: []write{{data, end}},
			want:   one + data,
		},
		"before us, where the server knows the end": {
			writes: []write{{short, end}, {data, end + int64(len(short))}},
			want:   one + short + data,
		},
		"under us, and longer": {
			writes: []write{{long, end}, {data, end}},
			want:   one + data + long[len(data):],
		},
		"over our first line": {
			writes:  []write{{data, end}, {"{theirs 2}\n", end}},
			want:    one + "{theirs 2}\n" + "urs b}\n" + blank,
			isStale: true,
		},
		"over our second line": {
			writes:  []write{{data, end}, {short, end + lineSize}},
			want:    one + "{ours a}\n" + short + blank,
			isStale: true,
		},
		"and cut the file": {
			writes:  []write{{data, end}},
			cut:     end + lineSize + 3,
			want:    one,
			isStale: true,
		},
		"a local directory is not read back": {
			writes:  []write{{data, end}, {long, end}},
			isLocal: true,
			want:    one + long,
		},
	} {
		s := openTemp(t, "x.jsonl")
		if !test.isLocal {
			s.SetSharing(SharingAlways)
		}
		s.sys.write = func(_ int, p []byte) (int, error) {
			for _, w := range test.writes {
				over(t, s, w.text, w.at)
			}
			if test.cut > 0 {
				require.NoError(t, os.Truncate(pathOf(s, "x.jsonl"), test.cut))
			}
			return len(p), nil
		}
		before := descriptors(t)
		_, err := s.Append("x.jsonl", []byte(data))
		if test.isStale {
			require.ErrorIs(t, err, storage.ErrStale, name)
		} else {
			require.NoError(t, err, name)
		}
		require.Equal(t, test.want, readDisk(t, s, "x.jsonl"), name)
		require.LessOrEqual(t, descriptors(t), before)
	}
}

// TestSharedLocks: of a lock in a shared directory neither the clock nor the PID tells whether it is stale. What does is
// that it stays as it is.
func TestSharedLocks(t *testing.T) {
	now := time.Now().UnixMilli()
	dead := deadPid(t)
	for name, text := range map[string]string{
		"a process that is not there, an hour ago": fmt.Sprintf("%d:%d\n", dead, now-3_600_000),
		"an hour from now":                         fmt.Sprintf("%d:%d\n", dead, now+3_600_000),
		"our own PID, an hour ago":                 fmt.Sprintf("%d:%d\n", os.Getpid(), now-3_600_000),
		"nothing yet":                              "",
	} {
		t.Run(name, func(t *testing.T) {
			s := openTemp(t)
			s.SetSharing(SharingAlways)
			writeDisk(t, s, ".x.jsonl.lock", text)
			require.NoError(t, os.Chtimes(pathOf(s, ".x.jsonl.lock"), time.Time{}, time.Now().Add(-time.Hour)))
			for range 2 {
				_, err := s.Lock(t.Context(), "x.jsonl")
				require.ErrorIs(t, err, storage.ErrLocked)
			}
			seen, _ := s.locks.foreign.Get("x.jsonl")
			seen.since = time.Now().Add(-lockForeign)
			s.locks.foreign.Add("x.jsonl", seen)
			unlock := storagetest.Lock(t, s, "x.jsonl")
			assert.Zero(t, s.locks.foreign.Len())
			require.NoError(t, unlock())
		})
	}
}
