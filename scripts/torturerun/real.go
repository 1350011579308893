package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

//go:embed client.ts
var clientScript []byte

// realClient is a process of the real client. It takes a request per line and answers with a line.
type realClient struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *bufio.Reader
}

// realAnswer is what client.ts answers.
type realAnswer struct {
	Error   string
	IDs     []string          // that it appended
	Entries []string          // of the session, in the order of the file
	Leaf    *string           // of the session
	Labels  map[string]string // of the session
	Title   string            // of the session
}

// startReal starts the client with a home of its own.
func startReal(o *options) (*realClient, error) {
	home := filepath.Join(o.dir, "home")
	script := filepath.Join(o.dir, "client.ts")
	if err := errors.Join(os.MkdirAll(home, 0o700), os.WriteFile(script, clientScript, 0o600)); err != nil {
		return nil, err
	}
	r := &realClient{cmd: exec.Command(o.bun, script, o.client)}
	r.cmd.Dir = home
	r.cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "TZ=UTC", "LANG=C.UTF-8", "PI_CODING_AGENT_DIR=" + o.source(),
	}
	r.cmd.Stderr = os.Stderr
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.answers = bufio.NewReaderSize(out, 1<<20)
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return r, r.cmd.Start()
}

func (r *realClient) ask(do, file, text string) (a realAnswer, err error) {
	line, err := json.Marshal(map[string]string{"do": do, "file": file, "text": text})
	if err != nil {
		return a, err
	}
	if _, err := r.in.Write(append(line, '\n')); err != nil {
		return a, err
	}
	answer, err := r.answers.ReadBytes('\n')
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return a, fmt.Errorf("%w: %.200q", err, answer)
	}
	return a, nil
}

func (r *realClient) kill() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
}

// realPause is between two turns of the client: while it has a session open, the mounts refuse to write.
const realPause = 300 * time.Millisecond

// runReal has the client take turns. Now and then it is killed.
func runReal(o *options) error {
	p, err := start(o)
	if err != nil {
		return err
	}
	var r *realClient
	for d := newDrawer(o); !p.stopped.Load(); time.Sleep(realPause) {
		command := d.next()
		if r == nil {
			if r, err = startReal(o); err != nil {
				return err
			}
		}
		if !p.turn(r, command) {
			r.kill()
			r = nil
		}
	}
	if r != nil {
		r.kill()
	}
	return p.end()
}

// turn is one of the client's. It returns false if the client was killed or failed.
func (p *process) turn(r *realClient, d draw) bool {
	session := turnsSession(int(d.session % turnsMany))
	p.mu.Lock()
	p.n++
	text := fmt.Sprintf("turn-%d", p.n)
	p.mu.Unlock()
	n := p.write(note{Do: "turn", Session: session, Text: text})
	if d.kind%20 == 0 {
		time.AfterFunc(time.Duration(d.size%200)*time.Millisecond, func() { _ = r.cmd.Process.Signal(syscall.SIGKILL) })
	}
	var a realAnswer
	unlock, err := p.exclude("turns")
	if err != nil {
		p.problem("%v", err)
		return false
	}
	defer unlock()
	err = p.during("a turn of the real client", func() (err error) {
		a, err = r.ask("turn", filepath.Join(p.source(), session+".jsonl"), text)
		return err
	})
	switch {
	case err != nil:
		p.count("turn, killed")
		p.write(note{Of: n, Maybe: true, Error: err.Error()})
		return false
	case a.Error != "":
		p.count("turn, refused")
		p.write(note{Of: n, Maybe: true, Error: a.Error})
		return true
	}
	p.count("turn")
	p.write(note{Of: n, IDs: a.IDs, Acked: len(a.IDs)})
	return d.kind%20 != 0
}
