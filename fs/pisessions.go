package fs

import (
	"encoding/json"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"sessionfs/sessioncore/program"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
)

// pi keeps its sessions elsewhere if it is told to (docs/format.md, pi): directly in the directory that
// PI_CODING_AGENT_SESSION_DIR or else sessionDir in settings.json names.

const (
	piSettings = "settings.json"
	// maxSettings is how much of the settings is read.
	maxSettings = 1 << 20
)

// piSessionDir returns the directory in which pi was told to keep the sessions of an agent directory, "" if it was not.
// given is the agent directory's path as the user gave it.
func piSessionDir(source *dir.Storage, given string, getenv func(string) string) string {
	if program.OfRoot(source, given, source.Path()) != program.Pi {
		return ""
	}
	home := getenv("HOME")
	if told := getenv("PI_CODING_AGENT_SESSION_DIR"); told != "" && isPiHere(source.Path(), getenv) {
		return piPath(told, home)
	}
	var settings struct {
		SessionDir string `json:"sessionDir"`
	}
	text, err := readSettings(source)
	if err != nil || json.Unmarshal(text, &settings) != nil {
		return ""
	}
	if owner, ok := strings.CutSuffix(source.Path(), program.PiPath); ok {
		home = owner // of whomever it is
	}
	return piPath(settings.SessionDir, home)
}

// PiSessions is piSessionDir for an agent directory that is not open: agent is its path without links, given as the user
// gave it.
func PiSessions(given, agent string, getenv func(string) string) string {
	source, err := dir.Open(agent)
	if err != nil {
		return ""
	}
	defer source.Close()
	return piSessionDir(source, given, getenv)
}

// isPiHere reports whether a pi that is started in this environment uses the agent directory.
func isPiHere(agent string, getenv func(string) string) bool {
	usual := getenv("PI_CODING_AGENT_DIR")
	if usual == "" {
		usual = filepath.Join(getenv("HOME"), program.PiPath)
	}
	a, err1 := os.Stat(agent)
	b, err2 := os.Stat(piPath(usual, getenv("HOME")))
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}

func readSettings(source *dir.Storage) ([]byte, error) {
	obj, err := source.Open(piSettings)
	if err != nil {
		return nil, err
	}
	defer obj.Close()
	return io.ReadAll(io.NewSectionReader(obj, 0, maxSettings))
}

// piPath returns the absolute path that pi reads a directory's name as, "" if that depends on where pi is started.
func piPath(name, home string) string {
	if name == "~" || strings.HasPrefix(name, "~/") {
		name = home + name[1:]
	}
	if rest, ok := strings.CutPrefix(name, "file://"); ok {
		if path, err := url.PathUnescape(rest); err == nil {
			name = path
		}
	}
	if !filepath.IsAbs(name) {
		return ""
	}
	return filepath.Clean(name)
}

// openSessions opens the directory of the sessions: elsewhere if that is not "", otherwise that in SOURCE.
func (t *tree) openSessions(name, elsewhere string) (*dir.Storage, error) {
	if elsewhere == "" || elsewhere == "/" {
		return t.sub(name)
	}
	parent, err := t.keep(dir.Open(filepath.Dir(elsewhere)))
	if storage.IsMissing(err) {
		return t.sub(name) // pi makes it when it needs it; until then there are no sessions
	}
	if err != nil {
		return nil, err
	}
	s, err := t.keep(parent.Sub(filepath.Base(elsewhere)))
	if err != nil {
		return nil, err
	}
	return s, checkLink(t.source, name, s)
}
