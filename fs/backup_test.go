package fs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSecondBackupOfPrograms: backup programs read the whole mount to its end, and a second run, in the
// same mount and in a new one, finds every file as it was (docs/design.md section 6).
func TestSecondBackupOfPrograms(t *testing.T) {
	fullOnly(t) // the page attributes of TestScripts does the same with rsync
	for program, backup := range map[string]func(t *testing.T) func(dir string) string{
		"restic": resticBackup, "borg": borgBackup,
	} {
		t.Run(program, func(t *testing.T) {
			if _, err := exec.LookPath(program); err != nil {
				missing(t, "%s is not installed", program)
			}
			run := backup(t)
			m := mountForTest(t, demo(t))
			require.NotEmpty(t, run(m.dir), "the first run must find files")
			require.Empty(t, run(m.dir), "changed in the same mount")
			m.stop()
			again := mountForTest(t, m.source, at(m.dir))
			require.Empty(t, run(again.dir), "changed in a new mount")

			files, err := filepath.Glob(filepath.Join(m.source, "sessions", "*", "*.jsonl"))
			require.NoError(t, err)
			require.NoError(t, os.Chtimes(files[0], time.Time{}, time.Now()))
			require.NotEmpty(t, run(again.dir), "a change must be found")
		})
	}
}

// resticBackup returns a backup by restic into a repository of the test; it prints what was new or changed. Not directories: in
// their entries restic keeps the number of the device, which the kernel gives each mount as it likes.
func resticBackup(t *testing.T) func(string) string {
	t.Setenv("RESTIC_REPOSITORY", filepath.Join(t.TempDir(), "repository"))
	t.Setenv("RESTIC_PASSWORD", "test")
	t.Setenv("RESTIC_CACHE_DIR", t.TempDir())
	run(t, "restic", "init")
	return func(dir string) string {
		return shell(t, `set -o pipefail; restic backup --json --verbose=2 "$1" |
			jq -r --arg dir "$1/" 'select(.message_type == "verbose_status" and .action != "unchanged" and
			.action != "scan_finished" and (.item | startswith($dir) and (endswith("/") | not))) | "\(.action) \(.item)"'`, dir)
	}
}

// borgBackup is the same of borg, which remembers no file as new as the newest that it saw: that one is not of the mount.
func borgBackup(t *testing.T) func(string) string {
	t.Setenv("BORG_BASE_DIR", t.TempDir())
	t.Setenv("BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK", "yes")
	repository := filepath.Join(t.TempDir(), "repository")
	run(t, "borg", "init", "--encryption=none", repository)
	return func(dir string) string {
		return shell(t, `set -o pipefail; newest=$2/newest; touch "$newest"; 
			borg create --list --filter AMCE "$1::$(date +%N)" "$3" "$newest" 2>&1 | { grep -v 'newest$' || true; }`, repository, t.TempDir(), dir)
	}
}
