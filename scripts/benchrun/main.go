// Command benchrun measures the rows of BENCHMARKS.md: it makes the stores, runs each row in turn
// with its peer, and prints the table. scripts/bench builds what it needs and calls it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// bench is one run of the program.
type bench struct {
	dir      string   // for everything that is made; the caller removes it
	daemon   []string // command line up to SOURCE MOUNTPOINT
	loopback string
	small    bool
	large    bool
	runs     int // of each row that counts; one more comes before them, to warm up
	client   *client
	sessions map[string]*session
	rare     bool // the store of many sessions has a rare word
}

func (b *bench) log(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	b := &bench{sessions: map[string]*session{}}
	flag.StringVar(&b.dir, "dir", "", "directory for stores and mounts")
	daemon := flag.String("daemon", "", "command line of the daemon, up to SOURCE MOUNTPOINT")
	flag.StringVar(&b.loopback, "loopback", "", "go-fuse's loopback example")
	flag.BoolVar(&b.small, "small", false, "small stores, to try the script")
	flag.BoolVar(&b.large, "large", false, "row i and j with 2.5 GB instead of 250 MB")
	flag.IntVar(&b.runs, "runs", 5, "how often each row is run")
	installed := flag.String("client", "", "directory with the client's node_modules")
	bun := flag.String("bun", "", "the client's runtime")
	report := flag.String("report", "", "file to write the table to")
	flag.Parse()
	b.daemon = strings.Fields(*daemon)
	rows, err := chosenRows(flag.Args())
	if err != nil {
		return err
	}
	if *installed != "" {
		if b.client, err = newClient(b.dir, *installed, *bun); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	about := aboutMachine(b.dir)
	results, err := b.runRows(ctx, rows)
	if err != nil && !errors.Is(err, errRowFailed) {
		return err
	}
	text := b.render(about, results, time.Now())
	fmt.Print(text)
	if err != nil || *report == "" {
		return err // a table with holes is not written
	}
	return os.WriteFile(*report, []byte(text), 0o644)
}

// row is a row of the table; it can have several lines.
type row struct {
	name string
	run  func(ctx context.Context, b *bench) ([]result, error)
}

func chosenRows(names []string) ([]row, error) {
	if len(names) == 0 {
		return allRows, nil
	}
	var chosen []row
	for _, name := range names {
		n := len(chosen)
		for _, r := range allRows {
			if r.name == name {
				chosen = append(chosen, r)
			}
		}
		if len(chosen) == n {
			return nil, fmt.Errorf("there is no row %q", name)
		}
	}
	return chosen, nil
}

// errRowFailed says that some row has no figures; which and why was logged.
var errRowFailed = errors.New("some rows failed")

// runRows runs one row after the other. A row that fails, also because what was read is not what it should
// be, stands in the table as that and without figures.
func (b *bench) runRows(ctx context.Context, rows []row) ([]result, error) {
	var results []result
	var failed error
	for _, r := range rows {
		b.log("row %s", r.name)
		got, err := r.run(ctx, b)
		if ctx.Err() != nil {
			return nil, errors.New("interrupted")
		}
		if err != nil {
			b.log("row %s failed: %v", r.name, err)
			failed = errRowFailed
			if len(got) == 0 {
				got = []result{{what: "row " + r.name}}
			}
		}
		for i := range got {
			got[i].row = r.name
			if err != nil {
				got[i].m, got[i].note = measured{}, "**failed**"
			}
		}
		results = append(results, got...)
	}
	return results, failed
}

// repeat calls once for the warm-up, with run 0, and then for each run that counts.
func (b *bench) repeat(once func(run int) error) error {
	for run := range b.runs + 1 {
		if err := once(run); err != nil {
			return err
		}
	}
	return nil
}
