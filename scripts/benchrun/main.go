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
	"slices"
	"strings"
	"syscall"
	"time"
)

// bench is one run of the program.
type bench struct {
	ctx      context.Context
	dir      string   // for everything that is made; the caller removes it
	daemon   []string // command line up to SOURCE MOUNTPOINT
	loopback string
	divisor  int // of all sizes
	runs     int // of each row that counts; one more comes before them, to warm up
	client   client
	ccusage  string // its program, "" without it
	sessions map[string]*session
	rare     bool // the store of many sessions has a rare word
}

// log tells on stderr how the run goes on.
func (b *bench) log(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...)
}

// failure ends a row: must and fail panic with it, and runRow recovers.
type failure struct{ error }

// must ends the row that runs with an error, if that is not nil, or if the run is interrupted.
func (b *bench) must(err error) {
	if err == nil {
		err = b.ctx.Err()
	}
	if err != nil {
		panic(failure{err})
	}
}

// fail ends the row that runs.
func (b *bench) fail(format string, args ...any) { b.must(fmt.Errorf(format, args...)) }

func main() {
	if len(os.Args) > 1 && os.Args[1] == starterName {
		os.Exit(startAsked(os.Args[2:]))
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run parses the command line, measures the rows and prints the table, or measures a team. The error is of a wrong
// command line, an interrupt, or rows that failed.
func run() error {
	b := &bench{sessions: map[string]*session{}}
	flag.StringVar(&b.dir, "dir", "", "directory for stores and mounts")
	daemon := flag.String("daemon", "", "command line of the daemon, up to SOURCE MOUNTPOINT")
	flag.StringVar(&b.loopback, "loopback", "", "go-fuse's loopback example")
	flag.IntVar(&b.divisor, "divisor", 1, "of the sizes of all stores: a large one to try the script")
	flag.IntVar(&b.runs, "runs", 5, "how often each row is run")
	flag.StringVar(&b.client.installed, "client", "", "directory with the client's node_modules")
	flag.StringVar(&b.client.bun, "bun", "", "the client's runtime")
	flag.StringVar(&b.ccusage, "ccusage", "", "ccusage's program, peer of row u")
	report := flag.String("report", "", "file to write the table to")
	flag.Parse()
	b.daemon = strings.Fields(*daemon)
	rows := allRows
	isTeam := flag.Arg(0) == "team"
	if flag.NArg() > 0 {
		rows = slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return !slices.Contains(flag.Args(), r.name) })
	}
	if !isTeam && len(rows) < flag.NArg() {
		return fmt.Errorf("not all of %s are rows", flag.Args())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	b.ctx = ctx
	if isTeam {
		_, err := b.runRow(row{"team", func(b *bench) []result {
			measureTeam(b, flag.Args()[1:])
			return nil
		}})
		return err
	}
	about := b.aboutMachine()
	results, failed := b.runRows(rows)
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	text := b.render(about, results, time.Now())
	fmt.Print(text)
	if failed != nil || *report == "" {
		return failed // a table with holes is not written
	}
	return os.WriteFile(*report, []byte(text), 0o644)
}

// runRows runs rows in turn, until an interrupt. A row that fails has one result without figures; the error then says that
// some failed.
func (b *bench) runRows(rows []row) (results []result, failed error) {
	for _, r := range rows {
		b.log("row %s", r.name)
		measured, err := b.runRow(r)
		if b.ctx.Err() != nil {
			return results, nil
		}
		if err != nil {
			b.log("row %s failed: %v", r.name, err)
			measured = []result{{what: "row " + r.name + " (**failed**)"}}
			failed = errors.New("some rows failed")
		}
		for i := range measured {
			measured[i].row = r.name
		}
		results = append(results, measured...)
	}
	return results, failed
}

// row is a row of the table; it can have several lines.
type row struct {
	name string
	run  func(b *bench) []result
}

// runRow runs a row. The error is the one of must or fail that has ended it.
func (b *bench) runRow(r row) (results []result, err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case failure:
			err = p.error
		default:
			panic(p)
		}
	}()
	return r.run(b), nil
}

// repeat calls once for the warm-up, without its figures, and then for each run that counts. once adds the figures of a run
// to res, which repeat returns.
func (b *bench) repeat(res []result, once func()) []result {
	once()
	for i := range res {
		res[i].ours = nil
		res[i].peers = nil
		res[i].peak = 0
	}
	for range b.runs {
		once()
	}
	return res
}
