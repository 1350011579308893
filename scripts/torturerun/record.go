package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// note is a line of a record.
//
// A write has two: before it, Do and what is to be written; after it, Of with the number of the first, and how much was
// acknowledged.
type note struct {
	N       int      `json:"n,omitempty"`
	Do      string   `json:"do,omitempty"`
	Session string   `json:"session,omitempty"` // path below SOURCE without .jsonl
	IDs     []string `json:"ids,omitempty"`     // of entries to be appended, or the one that is named
	Sizes   []int    `json:"sizes,omitempty"`
	Under   *string  `json:"under,omitempty"`  // the parent of the first one; nil where it is not known
	Answer  bool     `json:"answer,omitempty"` // there is an assistant's message among them
	Text    string   `json:"text,omitempty"`   // label, title, or the path that was read back

	Of    int    `json:"of,omitempty"`
	Acked int    `json:"acked,omitempty"` // lines
	Maybe bool   `json:"maybe,omitempty"` // the rest may have been written: the daemon was killed
	Error string `json:"error,omitempty"`

	Problem string         `json:"problem,omitempty"` // something that must not be
	Mount   string         `json:"mount,omitempty"`   // where it does not count if that was killed meanwhile
	From    int64          `json:"from,omitempty"`    // milliseconds since the epoch
	To      int64          `json:"to,omitempty"`
	Counts  map[string]int `json:"counts,omitempty"`
}

// process is what all programs of a run have in common: a record, counts, and a watch over its calls.
type process struct {
	*options
	mu      sync.Mutex // guards those below
	out     *os.File
	n       int
	counts  map[string]int
	call    string // that runs now
	since   time.Time
	stopped atomic.Bool
}

// start opens the record of a process, and stops it when its stdin ends.
func start(o *options) (*process, error) {
	out, err := os.Create(o.record(o.role, o.number))
	if err != nil {
		return nil, err
	}
	p := &process{options: o, out: out, counts: map[string]int{}}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		p.stopped.Store(true)
	}()
	go p.watch()
	return p, nil
}

// end writes the counts.
func (p *process) end() error {
	p.write(note{Counts: p.counts})
	return p.out.Close()
}

// write adds a line to the record and returns its number.
func (p *process) write(line note) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if line.Do != "" {
		p.n++
		line.N = p.n
	}
	text, err := json.Marshal(line)
	if err == nil {
		_, err = p.out.Write(append(text, '\n'))
	}
	if err != nil {
		panic(err)
	}
	return line.N
}

func (p *process) problem(format string, args ...any) {
	p.write(note{Problem: fmt.Sprintf(format, args...)})
}

func (p *process) count(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[what]++
}

// during runs f as a call that must come to an end.
func (p *process) during(what string, f func() error) error {
	p.mu.Lock()
	p.call, p.since = what, time.Now()
	p.mu.Unlock()
	err := f()
	p.mu.Lock()
	p.call = ""
	p.mu.Unlock()
	return err
}

// watch tells the parent of a call that hangs, which may be one that even SIGKILL does not end.
func (p *process) watch() {
	for ; ; time.Sleep(time.Second) {
		p.mu.Lock()
		call, since := p.call, p.since
		p.mu.Unlock()
		if call != "" && time.Since(since) > p.limit {
			p.problem("hangs: %s for more than %v", call, p.limit)
			fmt.Printf("hangs %s\n", call)
			return
		}
	}
}

// attempt runs f on a mount and counts how it ended. An error that is not among the allowed ones is a problem, unless
// the mount's daemon was killed meanwhile.
func (p *process) attempt(what, mount, session string, allowed []syscall.Errno, f func() error) error {
	from := time.Now()
	err := p.during(fmt.Sprintf("%s of %s in %s", what, session, mount), f)
	if err == nil {
		p.count(what)
		return nil
	}
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		p.problem("%s of %s in %s: %v", what, session, mount, err)
		return err
	}
	p.count(what + " " + errnoName(errno))
	if errno == syscall.ENOTCONN || errno == syscall.ECONNABORTED {
		time.Sleep(20 * time.Millisecond) // until the daemon is back
	}
	for _, a := range allowed {
		if errno == a {
			return err
		}
	}
	p.write(note{
		Problem: fmt.Sprintf("%s of %s in %s: %v", what, session, mount, err), Mount: mount,
		From: from.UnixMilli(), To: time.Now().UnixMilli(),
	})
	return err
}

// isUnclear reports whether a write that ended with this error may have taken effect: the daemon went away.
func isUnclear(err error) bool {
	for _, e := range []error{syscall.ECONNABORTED, syscall.ENOTCONN, syscall.EIO, syscall.EINTR} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// readRecord reads a record. The last line of a process that was killed may be cut off.
func readRecord(path string) (notes []note, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewReader(f)
	for {
		text, err := lines.ReadString('\n')
		if err == io.EOF {
			return notes, nil
		}
		var line note
		if err == nil {
			err = json.Unmarshal([]byte(strings.TrimSpace(text)), &line)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		notes = append(notes, line)
	}
}

func errnoName(e syscall.Errno) string {
	if name := unix.ErrnoName(e); name != "" {
		return name
	}
	return e.Error()
}
