// Command torturerun lets many programs loose on two mounts of one agent directory, kills the daemons meanwhile, and
// checks in the end that each acknowledged line is there, once and whole. scripts/torture builds what it needs and
// calls it.
//
// The programs are goroutines; each draws its commands from the seed and its own name, so that the same seed gives the same
// commands. How they meet each other is up to the machine. The writes of the programs, and their outcomes, make the model
// (model.go), and the check compares with that.
package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// options are the options of the command.
type options struct {
	dir     string // for all that is made; the caller removes it
	binary  string // the command sessionfs
	bun     string // the real client's runtime; "" for no real client
	modules string // where the real client is installed
	seed    uint64
	minutes float64
	clients int
	race    bool
}

// callLimit is for a call: one that takes longer hangs.
const callLimit = 2 * time.Minute

func main() {
	o := options{}
	flag.StringVar(&o.dir, "dir", "", "directory for stores and mounts")
	flag.StringVar(&o.binary, "daemon", "", "the command sessionfs")
	flag.StringVar(&o.bun, "bun", "", "the real client's runtime")
	flag.StringVar(&o.modules, "client", "", "where the real client is installed")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano())%1_000_000, "of the commands")
	flag.Float64Var(&o.minutes, "minutes", 5, "how long the programs run")
	flag.IntVar(&o.clients, "clients", 24, "how many programs use the mounts")
	flag.BoolVar(&o.race, "race", false, "the command has the race detector, which takes more memory")
	flag.Parse()
	if err := torture(&o); err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		os.Exit(1)
	}
}

// source is the agent directory, and file a session file in it.
func (o *options) source() string             { return o.mounted("agent") }
func (o *options) file(session string) string { return filepath.Join(o.source(), session+".jsonl") }

// mounts are the names of the two mounts that are written to; each has a daemon of its own. redacted is a third one, of -o redact.
var mounts = []string{"a", "b"}

const redacted = "r"

// mounted is a path in a mount.
func (o *options) mounted(mount string, name ...string) string {
	return filepath.Join(append([]string{o.dir, mount}, name...)...)
}

// away is where files are moved.
func (o *options) away() string { return filepath.Join(o.dir, "away") }

// run is one run: its daemons, its programs, and the model of the sessions.
type run struct {
	*options
	*model
	daemons map[string]*daemon
	hung    chan string // calls that do not end
}

// torture runs the programs as long as the options say, checks the outcome, and prints it. The error is of a run that
// could not start, or had problems.
func torture(o *options) error {
	fmt.Printf("seed %d, %d clients, %v minutes, real client: %v\n", o.seed, o.clients, o.minutes, o.bun != "")
	r := &run{
		options: o,
		model:   newModel(),
		daemons: map[string]*daemon{},
		hung:    make(chan string),
	}
	defer r.endDaemons()
	err := r.startDaemons()
	if err != nil {
		return err
	}
	end := time.Now().Add(time.Duration(o.minutes * float64(time.Minute)))
	ended := r.startPrograms(end)
	if r.disturb(end, ended) {
		r.check()
	}
	return r.report()
}

// startDaemons makes the sessions, and starts a daemon for each mount.
func (r *run) startDaemons() error {
	for _, dir := range []string{r.source(), r.away(), r.mounted("a"), r.mounted("b"), r.mounted(redacted)} {
		err := os.MkdirAll(dir, 0o700)
		if err != nil {
			return err
		}
	}
	err := r.makeStore()
	if err != nil {
		return err
	}
	for _, d := range []*daemon{
		{name: "a", memory: 100},
		{name: "b", memory: 150},
		{name: redacted, memory: 150, mode: ",redact"},
	} {
		d.options = r.options
		d.log = filepath.Join(r.dir, "log-"+d.name)
		r.daemons[d.name] = d
		err := d.start()
		if err != nil {
			return err
		}
	}
	return nil
}

// startPrograms starts the programs, which run their commands until end. It returns a channel that is closed when all
// have ended. The name of a program is a letter for its role, and its number.
func (r *run) startPrograms(end time.Time) (ended <-chan struct{}) {
	var running sync.WaitGroup
	start := func(role string, many int, loop func(p *program)) {
		for n := range many {
			name := fmt.Sprintf("%s%d", role, n)
			p := &program{
				run:    r,
				name:   name,
				number: n,
				drawer: newDrawer(r.seed, name),
			}
			running.Go(func() { loop(p) })
		}
	}
	untilEnd := func(do func()) {
		for time.Now().Before(end) {
			do()
		}
	}
	start("c", r.clients, func(p *program) {
		c := newClient(p)
		untilEnd(c.next)
	})
	start("o", manyOthers, func(p *program) {
		x := &other{p}
		untilEnd(x.next)
	})
	start("s", 2, func(p *program) {
		c := &client{program: p}
		untilEnd(c.lookForSecret)
	})
	if r.bun != "" {
		start("r", 1, func(p *program) {
			u := &realUser{program: p}
			untilEnd(u.next)
			u.kill()
		})
	}
	done := make(chan struct{})
	go func() {
		running.Wait()
		close(done)
	}()
	return done
}

// disturb kills and suspends daemons until the end, and waits until all programs end. It returns false if a call hangs.
// Daemon a lives through the second half, so that its memory can be seen.
func (r *run) disturb(end time.Time, ended <-chan struct{}) bool {
	rnd := rand.New(rand.NewPCG(r.seed, 1))
	half := time.Now().Add(time.Until(end) / 2)
	next := time.Now().Add(time.Second)
	for {
		select {
		case <-ended:
			return true
		case what := <-r.hung:
			r.hang(what)
			return false
		case <-time.After(time.Second):
		}
		if time.Now().Before(next) || time.Now().After(end) {
			continue
		}
		tenth := rnd.IntN(10)
		pause := time.Duration(rnd.IntN(500)) * time.Millisecond
		next = time.Now().Add(time.Duration(1000+rnd.IntN(7000)) * time.Millisecond)
		d := r.daemons["b"]
		if tenth < 3 && time.Now().Before(half) {
			d = r.daemons["a"]
		}
		if tenth == 9 {
			d.signal(syscall.SIGSTOP)
			time.Sleep(pause)
			d.signal(syscall.SIGCONT)
			continue
		}
		err := d.killAndStart(pause)
		if err != nil {
			r.hang(err.Error())
			return false
		}
	}
}

// hang reports a call that does not end, with the goroutines of the daemons.
func (r *run) hang(what string) {
	r.problem("%s", what)
	for name, d := range r.daemons {
		file := filepath.Join(r.dir, "goroutines-"+name)
		_ = os.WriteFile(file, []byte(d.dump()), 0o600)
		r.problem("the goroutines of daemon %s are in %s", name, file)
	}
}

// endDaemons kills the daemons that are left, and removes their mounts.
func (r *run) endDaemons() {
	for _, d := range r.daemons {
		if d.FS != nil {
			d.signal(syscall.SIGKILL)
		}
		_ = syscall.Unmount(r.mounted(d.name), syscall.MNT_DETACH)
	}
}

// report prints the problems, if there are any, and then returns an error.
func (r *run) report() error {
	if len(r.problems) == 0 {
		return nil
	}
	fmt.Printf("\n%d problems:\n", len(r.problems))
	for _, p := range r.problems[:min(len(r.problems), 40)] {
		fmt.Printf("  %.1000s\n", p)
	}
	fmt.Printf("\nFiles are in %s. Again: scripts/torture --seed %d --minutes %v\n", r.dir, r.seed, r.minutes)
	return errors.New("there are problems")
}
