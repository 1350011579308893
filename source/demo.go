package source

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sessionfs/fs"
	"sessionfs/mountopts"
	"sessionfs/sessioncore/agents"
	"sessionfs/testdata"
)

// unpackDemo makes the built-in sample stores SOURCE, in a private directory.
func (p *Place) unpackDemo() (err error) {
	p.made, err = os.MkdirTemp("", "sessionfs-demo-") // with mode 0700
	if err != nil {
		return fs.Refuse(fs.ErrSource, "the sample store cannot be unpacked: %s", err)
	}
	p.Source = mountopts.All
	if p.FSName == "" {
		p.FSName = "demo"
	}
	err = p.addSamples("omp", testdata.Demo())
	for _, agent := range agents.All() {
		store := testdata.DemoOf(agent.Name)
		if err == nil && store != nil {
			err = p.addSamples(agent.Name, store)
		}
	}
	if err != nil {
		err = fs.Refuse(fs.ErrSource, "the sample store cannot be unpacked to %s: %s", p.made, err)
	}
	return err
}

// addSamples unpacks the sample store of an agent below p.made, and adds its directory to the place.
func (p *Place) addSamples(agent string, store iofs.FS) error {
	home := filepath.Join(p.made, agent)
	p.Agents = append(p.Agents, mountopts.AgentDir{
		Name:     agent,
		Source:   home,
		SourceAs: home,
	})
	return Unpack(store, home)
}

// demoProject is the working directory of the sessions in the sample store.
const demoProject = "/home/dev/tidetable"

// LayOut makes a directory a home with the built-in sample stores where their agents have them, and
// with the project of omp's sessions, tidetable. The directory is made, or is there and empty.
func LayOut(home string) error {
	home, err := fs.Absolute(home)
	if err != nil {
		return err
	}
	err = os.MkdirAll(home, 0o700)
	if err != nil {
		return err
	}
	items, err := os.ReadDir(home)
	if err != nil {
		return err
	}
	if len(items) > 0 {
		return fs.Refuse(fs.ErrUsage, "%s is not empty (it holds %q); choose a directory that is empty or not there",
			home, items[0].Name())
	}
	own := filepath.Join(home, ".omp", "agent")
	err = Unpack(testdata.Demo(), own)
	if err != nil {
		return err
	}
	for _, agent := range agents.All() {
		store := testdata.DemoOf(agent.Name)
		if store == nil {
			continue
		}
		at := filepath.Join(home, strings.TrimPrefix(agent.InHome(), "~/"))
		err := Unpack(store, at)
		if err != nil {
			return err
		}
	}
	project := filepath.Join(home, filepath.Base(demoProject))
	err = os.Mkdir(project, 0o700)
	if err != nil {
		return err
	}
	sessions, err := filepath.Glob(filepath.Join(own, "sessions", "*", "*.jsonl"))
	for _, file := range sessions {
		if err == nil {
			err = moveSession(file, demoProject, project)
		}
	}
	return err
}

// moveSession replaces the working directory in the header of a session file, and keeps its time.
func moveSession(file, from, to string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	oldDir, _ := json.Marshal(from) // a string has no error
	newDir, _ := json.Marshal(to)
	oldMember := `"cwd":` + string(oldDir)
	newMember := `"cwd":` + string(newDir)
	text = bytes.Replace(text, []byte(oldMember), []byte(newMember), 1)
	err = os.WriteFile(file, text, 0o600)
	if err != nil {
		return err
	}
	return os.Chtimes(file, info.ModTime(), info.ModTime())
}

// Unpack copies src to dir: directories with mode 0700, files with 0600. The modification time of a
// session is the time of its last entry, so that ls -t lists the newest one first.
func Unpack(src iofs.FS, dir string) error {
	return iofs.WalkDir(src, ".", func(name string, d iofs.DirEntry, err error) error {
		target := filepath.Join(dir, filepath.FromSlash(name))
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.MkdirAll(target, 0o700)
		}
		data, err := iofs.ReadFile(src, name)
		if err != nil {
			return err
		}
		err = os.WriteFile(target, data, 0o600)
		if err != nil {
			return err
		}
		r, err := gzip.NewReader(bytes.NewReader(data))
		if err == nil { // an archived session
			data, err = io.ReadAll(r)
			if err != nil {
				return err
			}
		}
		written, ok := lastWritten(data)
		if ok {
			return os.Chtimes(target, written, written)
		}
		return nil
	})
}

// lastWritten returns the timestamp in the last line of a session file. ok is false if it has none.
func lastWritten(data []byte) (written time.Time, ok bool) {
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	var last struct {
		Timestamp time.Time `json:"timestamp"`
	}
	err := json.Unmarshal(lines[len(lines)-1], &last)
	return last.Timestamp, err == nil && !last.Timestamp.IsZero()
}
