package source

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"time"

	"sessionfs/fs"
	"sessionfs/mountopts"
	"sessionfs/sessioncore/agents"
	"sessionfs/testdata"
)

// unpackDemo makes the built-in sample stores SOURCE, in a private directory.
func (p *Place) unpackDemo() (err error) {
	p.made, err = os.MkdirTemp("", "sessionfs-demo-")
	if err != nil { // mode 0700
		return fs.Refuse(fs.ErrSource, "the sample store cannot be unpacked: %s", err)
	}
	p.Source = mountopts.All
	p.FSName = cmp.Or(p.FSName, "demo")
	add := func(name string, store iofs.FS) {
		at := filepath.Join(p.made, name)
		if err == nil && store != nil {
			err = Unpack(store, at)
			p.Agents = append(p.Agents, mountopts.AgentDir{Name: name, Source: at, SourceAs: at})
		}
	}
	add("omp", testdata.Demo())
	for _, agent := range agents.All() {
		add(agent.Name, testdata.DemoOf(agent.Name))
	}
	if err != nil {
		err = fs.Refuse(fs.ErrSource, "the sample store cannot be unpacked to %s: %s", p.made, err)
	}
	return err
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
		if err := os.WriteFile(target, data, 0o600); err != nil {
			return err
		}
		if r, err := gzip.NewReader(bytes.NewReader(data)); err == nil { // an archived session
			data, err = io.ReadAll(r)
			if err != nil {
				return err
			}
		}
		if written, ok := lastWritten(data); ok {
			return os.Chtimes(target, written, written)
		}
		return nil
	})
}

// lastWritten returns the timestamp in the last line of a session file.
func lastWritten(data []byte) (time.Time, bool) {
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	var last struct {
		Timestamp time.Time `json:"timestamp"`
	}
	err := json.Unmarshal(lines[len(lines)-1], &last)
	return last.Timestamp, err == nil && !last.Timestamp.IsZero()
}
