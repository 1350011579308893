package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// run is one run: two daemons and many programs.
type tortureRun struct {
	o        *options
	daemons  map[string]*daemon
	programs []*program
	hangs    chan string
	problems []string
}

// program is a process of this command that does something to the mounts or beside them.
type program struct {
	name  string
	cmd   *exec.Cmd
	stdin io.Closer // closed, it ends
	ended chan struct{}
}

func torture(o *options) error {
	fmt.Printf("seed %d, %d clients, %v minutes, real client: %v\n", o.seed, o.clients, o.minutes, o.bun != "")
	for _, dir := range []string{"records", "away", "a", "b", "state"} {
		if err := os.MkdirAll(filepath.Join(o.dir, dir), 0o700); err != nil {
			return err
		}
	}
	if err := errors.Join(makeStore(o), os.WriteFile(o.outside(), []byte("outside\n"), 0o600)); err != nil {
		return err
	}
	r := &tortureRun{o: o, daemons: map[string]*daemon{}, hangs: make(chan string, 100)}
	defer r.endPrograms()
	for _, name := range mounts {
		r.daemons[name] = newDaemon(o, name)
		if err := r.daemons[name].start(); err != nil {
			return err
		}
	}
	if err := r.startPrograms(); err != nil {
		return err
	}
	r.disturb(time.Now().Add(time.Duration(o.minutes * float64(time.Minute))))
	r.stopPrograms()
	r.check()
	return r.report()
}

func (r *tortureRun) problem(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

func (r *tortureRun) startPrograms() error {
	roles := map[string]int{"client": r.o.clients, "other": manyOthers, "history": 1}
	if r.o.bun != "" {
		roles["real"] = 1
	}
	for role, many := range roles {
		for n := range many {
			p, err := r.startProgram(role, n)
			if err != nil {
				return err
			}
			r.programs = append(r.programs, p)
		}
	}
	return nil
}

func (r *tortureRun) startProgram(role string, number int) (*program, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	o := r.o
	cmd := exec.Command(self, "-dir", o.dir, "-daemon", o.daemon, "-bun", o.bun, "-client", o.client, "-seed", strconv.FormatUint(o.seed, 10),
		"-clients", strconv.Itoa(o.clients), "-limit", o.limit.String(), "-role", role, "-number", strconv.Itoa(number))
	cmd.Stderr, cmd.Dir = os.Stderr, "/"
	p := &program{name: fmt.Sprintf("%s-%d", role, number), cmd: cmd, ended: make(chan struct{})}
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			r.hangs <- p.name + " " + lines.Text()
		}
		_ = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// disturb kills and suspends daemons until the end, or until a call hangs. Daemon a lives through the second half, so
// that its memory can be seen.
func (r *tortureRun) disturb(end time.Time) {
	rnd := rand.New(rand.NewPCG(r.o.seed, 1))
	half := time.Now().Add(time.Until(end) / 2)
	next := time.Now().Add(time.Second)
	sample := time.NewTicker(time.Second)
	defer sample.Stop()
	for time.Now().Before(end) {
		select {
		case what := <-r.hangs:
			r.hang(what)
			return
		case <-sample.C:
		}
		for _, d := range r.daemons {
			d.sample()
		}
		if time.Now().Before(next) {
			continue
		}
		kind, pause := rnd.IntN(10), time.Duration(rnd.IntN(500))*time.Millisecond
		next = time.Now().Add(time.Duration(1000+rnd.IntN(7000)) * time.Millisecond)
		d := r.daemons["b"]
		if kind < 3 && time.Now().Before(half) {
			d = r.daemons["a"]
		}
		if kind == 9 {
			d.suspend(pause)
		} else if err := d.killAndStart(pause); err != nil {
			r.hang(err.Error())
			return
		}
	}
}

// hang reports a call that does not end, with what the daemons are doing.
func (r *tortureRun) hang(what string) {
	r.problem("%s", what)
	for name, d := range r.daemons {
		d.downs = append(d.downs, interval{time.Now().UnixMilli(), math.MaxInt64 / 2}) // dump ends it
		file := filepath.Join(r.o.dir, "goroutines-"+name)
		_ = os.WriteFile(file, []byte(d.dump()), 0o600)
		r.problem("the goroutines of daemon %s are in %s", name, file)
	}
}

// stopPrograms lets them end their last command.
func (r *tortureRun) stopPrograms() {
	for _, p := range r.programs {
		p.stdin.Close()
	}
	limit := time.After(r.o.limit)
	for _, p := range r.programs {
		select {
		case <-p.ended:
			if !p.cmd.ProcessState.Success() {
				r.problem("%s ended with %v", p.name, p.cmd.ProcessState)
			}
		case <-limit:
			if len(r.problems) == 0 {
				r.hang(p.name + " does not end")
			}
			return
		}
	}
}

func (r *tortureRun) endPrograms() {
	for _, p := range r.programs {
		_ = p.cmd.Process.Kill()
	}
	for _, d := range r.daemons {
		if d.cmd != nil {
			d.signal(syscall.SIGKILL)
		}
		_ = syscall.Unmount(filepath.Join(r.o.dir, d.name), syscall.MNT_DETACH)
	}
}

// report prints what was done and what was found.
func (r *tortureRun) report() error {
	if len(r.problems) == 0 {
		return nil
	}
	fmt.Printf("\n%d problems:\n", len(r.problems))
	for i, p := range r.problems {
		if i == 40 {
			fmt.Printf("  … and %d more\n", len(r.problems)-i)
			break
		}
		fmt.Printf("  %.1000s\n", p)
	}
	fmt.Printf("\nFiles are in %s. Again: scripts/torture --seed %d --minutes %v\n", r.o.dir, r.o.seed, r.o.minutes)
	return errors.New("there are problems")
}
