package fs_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSecondBackupOfPrograms: backup programs read the whole mount to its end, and a second run, in the
// same mount and in a new one, finds every file as it was (docs/design.md section 6).
func TestSecondBackupOfPrograms(t *testing.T) {
	fullOnly(t) // TestSecondBackup does the same with tar and rsync
	for program, backup := range map[string]func(t *testing.T) func(dir string) (changed []string){
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

// resticBackup returns a backup by restic into a repository of the test; it returns what was new or changed.
func resticBackup(t *testing.T) func(string) []string {
	t.Setenv("RESTIC_REPOSITORY", filepath.Join(t.TempDir(), "repository"))
	t.Setenv("RESTIC_PASSWORD", "test")
	t.Setenv("RESTIC_CACHE_DIR", t.TempDir())
	run(t, "restic", "init")
	return func(dir string) (changed []string) {
		for line := range strings.Lines(run(t, "restic", "backup", "--json", "--verbose=2", dir)) {
			var status struct {
				Type   string `json:"message_type"`
				Action string `json:"action"`
				Item   string `json:"item"`
			}
			require.NoError(t, json.Unmarshal([]byte(line), &status), line)
			// Not directories: in their entries restic keeps the number of the device, which the kernel gives
			// each mount as it likes.
			if status.Type == "verbose_status" && status.Action != "unchanged" && status.Action != "scan_finished" &&
				strings.HasPrefix(status.Item, dir+"/") && !strings.HasSuffix(status.Item, "/") {
				changed = append(changed, status.Action+" "+status.Item)
			}
		}
		return changed
	}
}

// borgBackup is the same of borg.
func borgBackup(t *testing.T) func(string) []string {
	t.Setenv("BORG_BASE_DIR", t.TempDir())
	t.Setenv("BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK", "yes")
	repository := filepath.Join(t.TempDir(), "repository")
	run(t, "borg", "init", "--encryption=none", repository)
	runs := 0
	return func(dir string) (changed []string) {
		runs++
		// Borg remembers no file as new as the newest that it saw: that one is not of the mount.
		newest := filepath.Join(t.TempDir(), "newest")
		require.NoError(t, os.WriteFile(newest, nil, 0o600))
		_, list, err := tool(t, "borg", "create", "--list", "--filter", "AMCE", repository+"::"+string(rune('a'+runs)), dir, newest)
		require.NoError(t, err, list)
		for line := range strings.Lines(list) {
			if !strings.HasSuffix(strings.TrimSpace(line), newest) && !strings.HasSuffix(strings.TrimSpace(line), newest[1:]) {
				changed = append(changed, line)
			}
		}
		return changed
	}
}
