package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

//go:embed client.ts
var clientScript []byte

// realUser is a program that has the real client take turns. Now and then the client is killed.
type realUser struct {
	*program
	client *realClient
}

// realClient is a process of the real client. It takes a request per line and answers with a line.
type realClient struct {
	*exec.Cmd
	in      io.WriteCloser
	answers *json.Decoder
}

// realAnswer is what client.ts answers.
type realAnswer struct {
	Error   string
	Entries []string          // of the session, in the order of the file
	Labels  map[string]string // of the session
	Title   string            // of the session
}

// startReal starts the client with a home of its own.
func (o *options) startReal() (*realClient, error) {
	home := filepath.Join(o.dir, "home")
	script := filepath.Join(o.dir, "client.ts")
	if err := errors.Join(os.MkdirAll(home, 0o700), os.WriteFile(script, clientScript, 0o600)); err != nil {
		return nil, err
	}
	c := &realClient{Cmd: exec.Command(o.bun, script, o.modules)}
	c.Dir = home
	c.Stderr = os.Stderr
	c.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "TZ=UTC", "LANG=C.UTF-8", "PI_CODING_AGENT_DIR=" + o.source(),
	}
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.in = in
	c.answers = json.NewDecoder(out)
	return c, c.Start()
}

// ask has the client do something with a session file, and returns its answer. The error is of a client that has died.
func (c *realClient) ask(do, file, text string) (a realAnswer, err error) {
	request := map[string]string{
		"do":   do,
		"file": file,
		"text": text,
	}
	err = json.NewEncoder(c.in).Encode(request)
	if err != nil {
		return a, err
	}
	err = c.answers.Decode(&a)
	return a, err
}

// kill ends the client, if there is one.
func (r *realUser) kill() {
	if r.client != nil {
		_ = r.client.Process.Kill()
		_ = r.client.Wait()
		r.client = nil
	}
}

// realPause is between two turns of the client: while it has a session open, the mounts refuse to write.
const realPause = 300 * time.Millisecond

// next has the client take a turn in a session, and notes it in the model. In a twentieth of the turns the client is
// killed meanwhile.
func (r *realUser) next() {
	time.Sleep(realPause)
	if r.client == nil {
		client, err := r.startReal()
		if err != nil {
			r.problem("%v", err)
			return
		}
		r.client = client
	}
	d := r.draw()
	text := "turn-" + r.id()
	session := turnsSession(d.session)
	isKilled := d.kind%20 == 0
	if isKilled {
		process := r.client.Process
		moment := time.Duration(d.size%50) * time.Millisecond
		time.AfterFunc(moment, func() { _ = process.Kill() })
	}
	var a realAnswer
	err := r.during("a turn of the real client", func() (err error) {
		a, err = r.client.ask("turn", r.file(session), text)
		return err
	})
	isRefused := a.Error != ""
	out := outcome{acked: 2} // a prompt and an answer
	if err != nil || isRefused {
		out = outcome{maybe: true}
	}
	r.count(fmt.Sprintf("turn, of the real client: %v, refused: %v", err == nil, isRefused))
	if err != nil || isKilled {
		r.kill()
	}
	r.wants("r0", session, out, "turn user "+text, "turn assistant "+text)
}
