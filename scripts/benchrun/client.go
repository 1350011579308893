package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
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

// run has the client do something with an agent directory: "list" all its sessions, or "open" the session
// file in it that follows, or open it, build its "context" and print that. A file that it opens is a copy
// that belongs to the client: it may write there.
func (c *client) run(ctx context.Context, agent, what string, file ...string) (clientAnswer, error) {
	var a clientAnswer
	cmd := exec.CommandContext(ctx, c.bun, append([]string{c.script, c.modules, agent, what}, file...)...)
	cmd.Dir = c.home
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.home, "TMPDIR=" + c.home, "TZ=UTC", "LANG=C.UTF-8"}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return a, fmt.Errorf("the client: %w: %s", err, firstLine(errs.String()))
	}
	if err := json.Unmarshal(out, &a); err != nil {
		return a, fmt.Errorf("the client printed %.100q: %w", out, err)
	}
	c.version, c.runtime = a.Version, a.Runtime
	return a, nil
}

// clientTime runs the client over its copy of a session and checks that it read all of it. Without a
// client it returns 0.
func (b *bench) clientTime(ctx context.Context, what string, s *session) (time.Duration, error) {
	if b.client == nil {
		return 0, nil
	}
	file := filepath.Join(b.dir, "client-"+s.name, s.raw)
	if _, err := os.Stat(file); err != nil {
		if err := copyFile(s.file, file); err != nil {
			return 0, err
		}
	}
	a, err := b.client.run(ctx, filepath.Dir(filepath.Dir(filepath.Dir(file))), what, file)
	if err == nil && a.Entries != s.entries {
		err = fmt.Errorf("the client sees %d entries of %d", a.Entries, s.entries)
	}
	return time.Duration(a.Milliseconds * float64(time.Millisecond)), err
}

// clientList runs the client's list over an agent directory of so many sessions. Without a client it
// returns 0.
func (b *bench) clientList(ctx context.Context, agent string, sessions int) (time.Duration, error) {
	if b.client == nil {
		return 0, nil
	}
	a, err := b.client.run(ctx, agent, "list")
	if err == nil && a.Entries != sessions {
		err = fmt.Errorf("the client lists %d sessions of %d", a.Entries, sessions)
	}
	return time.Duration(a.Milliseconds * float64(time.Millisecond)), err
}

func copyFile(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err := out.ReadFrom(in); err != nil {
		_ = out.Close()
		return err
	}
	settle()
	return out.Close()
}
