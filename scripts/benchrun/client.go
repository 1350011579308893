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
type client struct {
	bun, modules, script, home string
	version, runtime           string
}

//go:embed client.ts
var clientScript []byte

// clientAnswer is what client.ts prints.
type clientAnswer struct {
	Milliseconds float64
	Entries      int
	Version      string
	Runtime      string
}

// newClient looks at an installation: a directory with node_modules in it. bun is the runtime.
func newClient(dir, installed, bun string) (*client, error) {
	c := &client{bun: bun, modules: filepath.Join(installed, "node_modules"), home: filepath.Join(dir, "home")}
	if _, err := os.Stat(filepath.Join(c.modules, "@oh-my-pi", "pi-coding-agent")); err != nil {
		return nil, fmt.Errorf("SESSIONFS_BENCH_CLIENT: no client there: %w", err)
	}
	if err := os.Mkdir(c.home, 0o700); err != nil {
		return nil, err
	}
	c.script = filepath.Join(dir, "client.ts")
	return c, os.WriteFile(c.script, clientScript, 0o600)
}

// clientTime has the client do something with an agent directory, and returns the seconds of the call alone: "list" all its
// sessions, or "open" the session file in it that follows, or open it, build its "context" and print that. It must see
// as many sessions or entries. Without a client it returns 0.
func (b *bench) clientTime(want int, agent, what string, file ...string) float64 {
	c := b.client
	if c == nil {
		return 0
	}
	cmd := exec.CommandContext(b.ctx, c.bun, append([]string{c.script, c.modules, agent, what}, file...)...)
	cmd.Dir = c.home
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.home, "TMPDIR=" + c.home, "TZ=UTC", "LANG=C.UTF-8"}
	out, err := cmd.Output()
	b.must(err)
	var a clientAnswer
	b.must(json.Unmarshal(out, &a))
	if c.version, c.runtime = a.Version, a.Runtime; a.Entries != want {
		b.fail("the client sees %d entries or sessions of %d", a.Entries, want)
	}
	return a.Milliseconds / 1000
}

// clientOpens runs the client over its copy of a session, where it may write.
func (b *bench) clientOpens(what string, s *session) float64 {
	if b.client == nil {
		return 0
	}
	agent := filepath.Join(b.dir, "client-"+s.name)
	file := filepath.Join(agent, s.raw)
	if _, err := os.Stat(file); err != nil {
		b.time(b.dir, fmt.Sprintf("mkdir -p '%s' && cp '%s' '%s' && sync", filepath.Dir(file), s.file, file))
	}
	return b.clientTime(s.entries, agent, what, file)
}

func (b *bench) clientNote() string {
	if b.client == nil {
		return " (no client installed: without its peer)"
	}
	return ""
}
