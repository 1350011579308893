package transfer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The units of systemd.
const (
	TimerName   = "sessionfs-keep.timer"
	ServiceName = "sessionfs-keep.service"
	TimerUnit   = `[Unit]
Description=Keep the sessions of coding agents

[Timer]
OnCalendar=daily
Persistent=true

[Install]
WantedBy=timers.target
`
	serviceUnit = `[Unit]
Description=Keep the sessions of coding agents

[Service]
Type=oneshot
ExecStart=%s
`
)

// unitDir returns the directory of the units of this user.
func unitDir() (string, error) {
	config, err := os.UserConfigDir()
	return filepath.Join(config, "systemd", "user"), err
}

// SetTimer has systemd run a command as this user each day. set is false, without an error, where there is
// no systemd.
func SetTimer(command []string) (set bool, err error) {
	if systemctl("show-environment") != nil {
		return false, nil
	}
	dir, err := unitDir()
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return false, err
	}
	// ExecStart has escapes of its own, for specifiers, quotes, variables and blanks.
	escapes := strings.NewReplacer("%", "%%", `\`, `\\`, " ", `\x20`, `"`, `\x22`, "'", `\x27`, "$", "$$")
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = escapes.Replace(word)
	}
	service := fmt.Sprintf(serviceUnit, strings.Join(words, " "))
	for name, text := range map[string]string{TimerName: TimerUnit, ServiceName: service} {
		err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)
		if err != nil {
			return false, err
		}
	}
	return true, systemctl("enable", "--now", TimerName)
}

// RemoveTimer ends the timer and removes the units. Its error is fs.ErrNotExist where there is none.
func RemoveTimer() error {
	dir, err := unitDir()
	if err != nil {
		return err
	}
	_, err = os.Lstat(filepath.Join(dir, TimerName))
	if errors.Is(err, fs.ErrNotExist) {
		return err
	}
	failed := systemctl("disable", "--now", TimerName)
	for _, name := range []string{TimerName, ServiceName} {
		err := os.Remove(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return failed
}

// systemctl runs systemctl for this user.
func systemctl(args ...string) error {
	text, err := exec.Command("systemctl", append([]string{"--user"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("systemctl --user %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(text)))
	}
	return nil
}
