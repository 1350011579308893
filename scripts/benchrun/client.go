package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// client is the real client, the peer of some rows. It is asked for its own time of the one call that
// is compared, without the start of its runtime, which would be several times that.
type client struct{ bun, installed, version, runtime string } // installed is "" without it

//go:embed client.ts
var clientScript []byte

// clientTime has the client do something with an agent directory, and returns the seconds of the call alone: "list" all its
// sessions, or "open" the session file in it that follows, or open it, build its "context" and print that. It must see
// as many sessions or entries. Without a client it returns 0.
func (b *bench) clientTime(want int, agent, what string, file ...string) float64 {
	c := &b.client
	if c.installed == "" {
		return 0
	}
	home := filepath.Join(b.dir, "home")
	script := filepath.Join(home, "client.ts")
	b.must(write(script, clientScript, 0o600))
	modules := filepath.Join(c.installed, "node_modules")
	args := append([]string{script, modules, agent, what}, file...)
	cmd := exec.CommandContext(b.ctx, c.bun, args...)
	cmd.Dir = home
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "TZ=UTC", "LANG=C.UTF-8"}
	out, err := cmd.Output()
	b.must(err)
	var a struct {
		Milliseconds     float64
		Entries          int
		Version, Runtime string
	}
	b.must(json.Unmarshal(out, &a))
	c.version = a.Version
	c.runtime = a.Runtime
	if a.Entries != want {
		b.fail("the client sees %d entries or sessions of %d", a.Entries, want)
	}
	return a.Milliseconds / 1000
}

// clientOpens is clientTime on a copy of a session, which the client may change. The first call makes the copy.
func (b *bench) clientOpens(what string, s *session) float64 {
	if b.client.installed == "" {
		return 0
	}
	agent := filepath.Join(b.dir, "client-"+s.name)
	file := filepath.Join(agent, s.raw)
	_, err := os.Stat(file)
	if err != nil {
		b.time(b.dir, fmt.Sprintf("mkdir -p '%s' && cp '%s' '%s' && sync", filepath.Dir(file), s.file, file))
	}
	return b.clientTime(s.entries, agent, what, file)
}
