// Command torturerun lets many programs loose on two mounts of one agent directory, kills the daemons meanwhile, and
// checks in the end that what was acknowledged is there, once and whole. scripts/torture builds what it needs and
// calls it.
//
// The programs are processes of this command. Each draws its commands from the seed and its own name, so that the same
// seed gives the same commands; how they meet each other is up to the machine. What a program is about to write, and
// what was acknowledged of it, goes into its record (record.go), from which the model of the check is made
// (model.go).
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// options are the same for all processes of a run.
type options struct {
	dir     string // for all that is made; the caller removes it
	daemon  string // the command sessionfs
	bun     string // the real client's runtime; "" for no real client
	client  string // where the real client is installed
	seed    uint64
	minutes float64
	clients int
	limit   time.Duration // for a call: one that takes longer hangs
	role    string        // of this process, "" for the one that starts the others
	number  int           // of this process among those of its role
}

func main() {
	var o options
	flag.StringVar(&o.dir, "dir", "", "directory for stores, mounts and records")
	flag.StringVar(&o.daemon, "daemon", "", "the command sessionfs")
	flag.StringVar(&o.bun, "bun", "", "the real client's runtime")
	flag.StringVar(&o.client, "client", "", "where the real client is installed")
	flag.Uint64Var(&o.seed, "seed", 0, "of the commands; 0 for a new one")
	flag.Float64Var(&o.minutes, "minutes", 5, "how long the programs run")
	flag.IntVar(&o.clients, "clients", 24, "how many programs use the mounts")
	flag.DurationVar(&o.limit, "limit", 2*time.Minute, "a call that takes longer hangs")
	flag.StringVar(&o.role, "role", "", "what a process of this command does for another")
	flag.IntVar(&o.number, "number", 0, "of this process in its role")
	flag.Parse()
	if o.seed == 0 {
		o.seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	if err := run(&o); err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		os.Exit(1)
	}
}

func run(o *options) error {
	if o.dir == "" {
		return errors.New("-dir is missing")
	}
	switch o.role {
	case "":
		return torture(o)
	case "client":
		return runClient(o)
	case "other":
		return runOther(o)
	case "history":
		return runHistory(o)
	case "real":
		return runReal(o)
	}
	return fmt.Errorf("no role %q", o.role)
}

// source is the agent directory.
func (o *options) source() string { return filepath.Join(o.dir, "agent") }

// mounts are the names of the two mounts; each has a daemon of its own.
var mounts = []string{"a", "b"}

// mounted is a path in a mount.
func (o *options) mounted(mount, name string) string { return filepath.Join(o.dir, mount, name) }

// record is the path of the record of a process.
func (o *options) record(role string, number int) string {
	return filepath.Join(o.dir, "records", fmt.Sprintf("%s-%d.jsonl", role, number))
}
