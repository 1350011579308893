package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// rowGrep: a session's branch and its raw file, each as one flat file.
func rowGrep(ctx context.Context, b *bench) ([]result, error) {
	s, err := b.longSession()
	if err != nil {
		return nil, err
	}
	raw := result{what: "`grep -c` over the raw file, " + s.describe(), peer: peerPlain, goal: goal{ratio: 1.5}}
	branch := result{what: "`grep -c` over `branches/current/entries.jsonl`", peer: peerPlain, goal: goal{ratio: 1.5}}
	flat := filepath.Join(b.dir, "branch.jsonl")
	err = b.repeat(func(run int) error {
		return b.withOurs(ctx, s.agent, &raw.m, func(mt *mount) error {
			if err := warmDaemon(ctx, mt, s); err != nil {
				return err
			}
			if err := grepBoth(ctx, &raw.m, run, mt.path(s.raw), s.file); err != nil {
				return err
			}
			of := mt.path(s.dir, "branches", "current", "entries.jsonl")
			if run == 0 {
				if err := copyFile(of, flat); err != nil {
					return err
				}
			}
			return grepBoth(ctx, &branch.m, run, of, flat)
		})
	})
	return []result{branch, raw}, err
}

func grepBoth(ctx context.Context, m *measured, run int, ours, plain string) error {
	var took [2]time.Duration
	var out [2]string
	for i, file := range [...]string{ours, plain} {
		var err error
		// Not to /dev/null: grep stops at its first match there.
		if out[i], took[i], err = output(ctx, "/", "grep -c toolResult '"+file+"'"); err != nil {
			return err
		}
	}
	if out[0] != out[1] {
		return fmt.Errorf("grep counts %q and %q", out[0], out[1])
	}
	if run > 0 {
		m.addTime(took[0], took[1])
	}
	return nil
}

// blobBytes is the size of row k's blob in the full run.
const blobBytes = 500 * megabyte

// rowBlob: one large file that never changes.
func rowBlob(ctx context.Context, b *bench) ([]result, error) {
	size := int64(b.shrink(blobBytes))
	agent, name, err := b.blob(size)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("`cat` of a blob, %d MB, first time", size/megabyte)
	res := []result{
		{what: what, peer: peerPlain, goal: goal{ratio: 1.2, root: true}},
		{what: what, peer: peerLoopback, goal: goal{ratio: 2, user: true}},
	}
	line := "cat blobs/" + name + " >/dev/null"
	err = b.repeat(func(run int) error {
		return b.withOurs(ctx, agent, &res[0].m, func(mt *mount) error {
			return b.withLoopback(ctx, agent, func(lo *mount) error {
				if run == 0 {
					return sameOutput(ctx, mt.dir, agent, "cat blobs/"+name+" | sha256sum")
				}
				var took [3]time.Duration
				for i, dir := range [...]string{mt.dir, agent, lo.dir} {
					var err error
					if took[i], err = command(ctx, dir, line); err != nil {
						return err
					}
				}
				res[0].m.addTime(took[0], took[1])
				res[1].m.addTime(took[0], took[2])
				return nil
			})
		})
	})
	return res, err
}

// appends is how many lines rows i and l add.
const appends = 20

// rowForeignAppend: another program adds a line; the peer is the same readlink when nothing was added,
// most of which is the start of a process.
func rowForeignAppend(ctx context.Context, b *bench) ([]result, error) {
	s, err := b.hugeSession()
	if err != nil {
		return nil, err
	}
	res := result{
		what: "after a foreign append, next `readlink leaf`, " + s.describe(),
		peer: "the same, nothing appended", goal: goal{seconds: 0.005},
	}
	err = b.withOurs(ctx, s.agent, &res.m, func(mt *mount) error {
		if err := warmDaemon(ctx, mt, s); err != nil {
			return err
		}
		for i := range appends + 1 {
			id := fmt.Sprintf("zz%06d", i)
			if err := appendLine(s.file, foreignLine(id, s.lastID, i)); err != nil {
				return err
			}
			out, ours, err := output(ctx, mt.path(s.dir), "readlink leaf")
			if err != nil {
				return err
			}
			if want := "entries/" + id + ".json\n"; out != want {
				return fmt.Errorf("leaf is %q, not %q", out, want)
			}
			peer, err := command(ctx, mt.path(s.dir), "readlink leaf")
			if err != nil {
				return err
			}
			if i > 0 {
				res.m.addTime(ours, peer)
			}
			s.lastID = id
			time.Sleep(50 * time.Millisecond) // a client is not faster
		}
		return nil
	})
	return []result{res}, err
}

func foreignLine(id, parent string, i int) string {
	now := stamp(time.Now())
	return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%q,"timestamp":%q,"message":{"role":"user","content":"line %d","timestamp":%d}}`+"\n",
		id, parent, now, i, time.Now().UnixMilli())
}

// appendLine adds a line as the client does: one write with O_APPEND.
func appendLine(file, line string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(line); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
