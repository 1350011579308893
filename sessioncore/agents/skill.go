package agents

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"sessionfs/sessioncore/storage"
)

// skillMark is the last line of an installed skill: the hash of the lines before it.
var skillMark = regexp.MustCompile(`(?s)^(.*)<!-- sessionfs ([0-9a-f]{64}) -->\n$`)

// marked returns the text of a skill with its mark.
func marked(text string) string {
	sum := sha256.Sum256([]byte(text))
	return text + "<!-- sessionfs " + hex.EncodeToString(sum[:]) + " -->\n"
}

// maxSkill bounds the size of a skill of ours, in bytes, which has some thousands.
const maxSkill = 256 << 10

// checkOurs returns an error unless a file is a skill as this program, or an earlier version, wrote
// it. The error is fs.ErrNotExist for no file.
func checkOurs(file string) error {
	text, err := storage.ReadRegular(file, maxSkill)
	if errors.Is(err, storage.ErrNotRegular) {
		return fmt.Errorf("%s is a link, or no file of at most %d KiB; it stays", file, maxSkill>>10)
	}
	if err != nil {
		return err
	}
	parts := skillMark.FindStringSubmatch(string(text)) // all, the text, its hash
	isOurs := parts != nil && marked(parts[1]) == string(text)
	if !isOurs {
		return fmt.Errorf("%s was changed, or is another skill of that name; it stays", file)
	}
	return nil
}

// InstallSkill writes the text of a skill, with a mark that makes it known later. Another file there
// stays: that is an error. No link is followed in the two directories that it may make.
func InstallSkill(file, text string) error {
	err := checkOurs(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir := filepath.Dir(file)
	err = makeSkillDirs(dir)
	if err != nil {
		return err
	}
	made, err := os.CreateTemp(dir, "skill")
	if err != nil {
		return err
	}
	defer os.Remove(made.Name())
	_, err = made.WriteString(marked(text))
	err = errors.Join(err, made.Close())
	if err != nil {
		return err
	}
	return os.Rename(made.Name(), file)
}

// makeSkillDirs makes the directory of a skill and the one of all skills above it, unless they are there. It returns an
// error for a link in their place.
func makeSkillDirs(dir string) error {
	skills := filepath.Dir(dir)
	err := os.MkdirAll(filepath.Dir(skills), 0o700)
	if err != nil {
		return err
	}
	for _, d := range []string{skills, dir} {
		err := os.Mkdir(d, 0o700)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		info, err := os.Lstat(d)
		if err != nil || !info.IsDir() {
			return fmt.Errorf("%s is a link or no directory; nothing is written", d)
		}
	}
	return nil
}

// UninstallSkill removes the skill and its directory. Its error is fs.ErrNotExist where there is none.
func UninstallSkill(file string) error {
	err := checkOurs(file)
	if err != nil {
		return err
	}
	err = os.Remove(file)
	if err != nil {
		return err
	}
	_ = os.Remove(filepath.Dir(file)) // unless something else is in it
	return nil
}
