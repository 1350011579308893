package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// allRows is the table of BENCHMARKS.md.
var allRows = []row{
	{"a", rowFirstListing},
	{"b", rowCatEntries},
	{"c", rowLongListing},
	{"d", rowGrep},
	{"e", rowContext},
	{"f", rowAppend},
	{"g", rowMount},
	{"h", rowIndex},
	{"i", rowForeignAppend},
	{"j", rowMemory},
	{"k", rowBlob},
	{"l", rowTail},
	{"m", rowCosts},
	{"n", rowSearch},
	{"o", rowArchive},
	{"p", rowBeside},
	{"q", rowDatabase},
	{"r", rowLease},
}

const (
	peerClient   = "client"
	peerLoopback = "loopback"
	peerPlain    = "plain file"
)

// withOurs calls f with a fresh mount of an agent directory, and notes the daemon's peak memory after.
func (b *bench) withOurs(ctx context.Context, agent string, m *measured, f func(*mount) error) error {
	mt, err := b.mountOurs(ctx, agent)
	if err != nil {
		return err
	}
	err = f(mt)
	if err == nil && m != nil {
		err = m.notePeak(mt)
	}
	return errors.Join(err, mt.close())
}

func (b *bench) withLoopback(ctx context.Context, dir string, f func(*mount) error) error {
	mt, err := b.mountLoopback(ctx, dir)
	if err != nil {
		return err
	}
	return errors.Join(f(mt), mt.close())
}

// warmDaemon has the daemon index a session while the kernel learns nothing of what is in entries/:
// reading leaf needs the whole index and no entry's name. "Daemon warm, first time" is a fresh mount
// after this; what the kernel could remember of an earlier mount went with it, and the pages of the
// backing files are in its cache since they were made.
func warmDaemon(ctx context.Context, mt *mount, s *session) error {
	_, err := command(ctx, mt.path(s.dir), "readlink leaf >/dev/null")
	return err
}

func (b *bench) clientNote() string {
	if b.client == nil {
		return "no client installed: without its peer"
	}
	return ""
}

// rowFirstListing: the daemon reads and checks the whole file, and finds the lines that are no JSON.
func rowFirstListing(ctx context.Context, b *bench) ([]result, error) {
	s, err := b.longSession()
	if err != nil {
		return nil, err
	}
	res := result{
		what: fmt.Sprintf("first `ls -U entries \\| wc -l` after a mount, %s", s.describe()),
		peer: peerClient + ": SessionManager.open", goal: goal{ratio: 0.3}, note: b.clientNote(),
	}
	err = b.repeat(func(run int) error {
		return b.withOurs(ctx, s.agent, &res.m, func(mt *mount) error {
			ours, err := expect(ctx, mt.path(s.dir), "ls -U entries | wc -l", s.entries)
			if err != nil {
				return err
			}
			if run == 0 {
				_, err := expect(ctx, mt.path(s.dir), "wc -l <problems.jsonl", s.bad)
				return err
			}
			peer, err := b.clientTime(ctx, "open", s)
			res.m.addTime(ours, peer)
			return err
		})
	})
	return []result{res}, err
}

// onBoth calls f with a fresh warm mount of a session and one of its plain files through loopback.
func (b *bench) onBoth(ctx context.Context, s *session, m *measured, f func(ours, loopback string) error) error {
	return b.withOurs(ctx, s.agent, m, func(mt *mount) error {
		if err := warmDaemon(ctx, mt, s); err != nil {
			return err
		}
		return b.withLoopback(ctx, s.plain, func(lo *mount) error { return f(mt.path(s.dir), lo.dir) })
	})
}

// kernelForgets is when what both daemons let the kernel remember for a second is over.
const kernelForgets = 1100 * time.Millisecond

// rowCatEntries: an open, a read and a close of each entry.
func rowCatEntries(ctx context.Context, b *bench) ([]result, error) {
	s, err := b.middleSession()
	if err != nil {
		return nil, err
	}
	const line = "cat entries/*.json >/dev/null"
	what := "`cat entries/*.json`, " + s.describe()
	res := []result{
		{what: what + ", daemon warm, first time", peer: peerLoopback, goal: goal{ratio: 0.8}},
		{what: what + ", again at once", peer: peerLoopback, goal: goal{ratio: 0.5}},
		{what: what + ", again a second later", peer: peerLoopback, goal: goal{ratio: 0.5}},
	}
	err = b.repeat(func(run int) error {
		return b.onBoth(ctx, s, &res[0].m, func(ours, loopback string) error {
			if run == 0 {
				return sameOutput(ctx, ours, loopback, "cat entries/*.json | sha256sum")
			}
			var took [6]time.Duration
			for i, dir := range [...]string{ours, ours, loopback, loopback, ours, loopback} {
				if i == 4 {
					time.Sleep(kernelForgets)
				}
				if took[i], err = command(ctx, dir, line); err != nil {
					return err
				}
			}
			res[0].m.addTime(took[0], took[2])
			res[1].m.addTime(took[1], took[3])
			res[2].m.addTime(took[4], took[5])
			return nil
		})
	})
	return res, err
}

// sameOutput runs a command line in both directories: what is compared must be the same work.
func sameOutput(ctx context.Context, a, b, line string) error {
	var out [2]string
	for i, dir := range [...]string{a, b} {
		var err error
		if out[i], _, err = output(ctx, dir, line); err != nil {
			return err
		}
	}
	if out[0] != out[1] {
		return fmt.Errorf("%s: the two sides differ: %.60q and %.60q", line, out[0], out[1])
	}
	return nil
}

// rowLongListing: a listing with the attributes of every entry. Nothing is known to the kernel yet.
func rowLongListing(ctx context.Context, b *bench) ([]result, error) {
	s, err := b.longSession()
	if err != nil {
		return nil, err
	}
	res := result{what: fmt.Sprintf("`ls -l entries`, %d entries", s.entries), peer: peerLoopback + ", default options", goal: goal{ratio: 0.25}}
	err = b.repeat(func(run int) error {
		return b.onBoth(ctx, s, &res.m, func(ours, loopback string) error {
			if run == 0 {
				return sameOutput(ctx, ours, loopback, "ls -l --time-style=full-iso entries | tail -n +2 | sha256sum")
			}
			const line = "ls -l entries >/dev/null"
			a, err := command(ctx, ours, line)
			if err != nil {
				return err
			}
			p, err := command(ctx, loopback, line)
			res.m.addTime(a, p)
			return err
		})
	})
	return []result{res}, err
}

// rowContext: the client's time is that of opening the file, building the context and printing it.
func rowContext(ctx context.Context, b *bench) ([]result, error) {
	s, err := b.middleSession()
	if err != nil {
		return nil, err
	}
	res := result{
		what: "first `cat context.json` after a mount, " + s.describe(),
		peer: peerClient + ": open, buildSessionContext, JSON.stringify", goal: goal{ratio: 0.5}, note: b.clientNote(),
	}
	err = b.repeat(func(run int) error {
		return b.withOurs(ctx, s.agent, &res.m, func(mt *mount) error {
			ours, err := command(ctx, mt.path(s.dir), "cat context.json >/dev/null")
			if err != nil || run == 0 {
				return err
			}
			peer, err := b.clientTime(ctx, "context", s)
			res.m.addTime(ours, peer)
			return err
		})
	})
	return []result{res}, err
}
