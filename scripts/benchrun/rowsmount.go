package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"time"
)

// rowMount: mounting must not read the store, so it costs the same for one session and for thousands.
func rowMount(ctx context.Context, b *bench) ([]result, error) {
	n := b.shrink(10_000)
	many, err := b.manySessions(n, 4, int64(n)*4000)
	if err != nil {
		return nil, err
	}
	one, err := b.manySessions(1, 4, 4000)
	if err != nil {
		return nil, err
	}
	ready := result{
		what: fmt.Sprintf("mount until ready, %d sessions", n), peer: "the same, 1 session",
		goal: goal{text: "equal within noise"},
	}
	resident := result{
		what: fmt.Sprintf("resident memory after that and `ls sessions`, %d sessions", n), peer: "the same, 1 session",
		unit: unitBytes, goal: goal{bytes: 20 * megabyte},
	}
	err = b.repeat(func(run int) error {
		var took [2]time.Duration
		var mem [2]memory
		for i, agent := range [...]string{many, one} {
			err := b.withOurs(ctx, agent, &ready.m, func(mt *mount) (err error) {
				took[i] = mt.ready
				if _, err := command(ctx, mt.dir, "ls sessions >/dev/null"); err != nil {
					return err
				}
				mem[i], err = mt.memory()
				return err
			})
			if err != nil {
				return err
			}
		}
		if run > 0 {
			ready.m.addTime(took[0], took[1])
			resident.m.ours = append(resident.m.ours, float64(mem[0].resident))
			resident.m.peer = append(resident.m.peer, float64(mem[1].resident))
		}
		return nil
	})
	resident.m.peak = ready.m.peak
	return []result{ready, resident}, err
}

// Sizes of the store of row j in the full run.
const (
	storeSessions = 700
	storeEntries  = 200
	storeBytes    = 1600 * megabyte
)

// rowIndex: the list of all sessions, of a daemon that has seen none of them, and again.
func rowIndex(ctx context.Context, b *bench) ([]result, error) {
	n := b.shrink(storeSessions)
	bytes := int64(b.shrink(storeBytes))
	agent, err := b.manySessions(n, storeEntries, bytes)
	if err != nil {
		return nil, err
	}
	peer := peerClient + ": SessionManager.listAll"
	what := fmt.Sprintf("`cat index.jsonl`, %d sessions, %d MB", n, bytes/megabyte)
	res := []result{
		{what: what + ", cold daemon", peer: peer, goal: goal{ratio: 1}, note: b.clientNote()},
		{what: what + ", again", peer: peer, goal: goal{ratio: 0.1}, note: b.clientNote()},
	}
	err = b.repeat(func(run int) error {
		return b.withOurs(ctx, agent, &res[0].m, func(mt *mount) error {
			var took [2]time.Duration
			for i := range took {
				if took[i], err = expect(ctx, mt.dir, "cat index.jsonl | wc -l", n); err != nil {
					return err
				}
			}
			client, err := b.clientList(ctx, agent, n)
			if err != nil || run == 0 {
				return err
			}
			res[0].m.addTime(took[0], client)
			res[1].m.addTime(took[1], client)
			return nil
		})
	})
	return res, err
}

// rowMemory: what the daemon takes after every name in the store was listed and every byte read. Once:
// memory is not timing.
func rowMemory(ctx context.Context, b *bench) ([]result, error) {
	n := b.shrink(storeSessions)
	bytes := int64(b.shrink(storeBytes))
	agent, err := b.manySessions(n, storeEntries, bytes)
	if err != nil {
		return nil, err
	}
	walk := result{
		what: fmt.Sprintf("resident memory after `find` and `cat` over a store of %d sessions, %d MB", n, bytes/megabyte),
		unit: unitBytes, goal: goal{bytes: 150 * megabyte},
	}
	err = b.withOurs(ctx, agent, &walk.m, func(mt *mount) error {
		took, err := command(ctx, mt.dir, "find . -type f -print0 | xargs -0 cat >/dev/null")
		if err != nil {
			return err
		}
		b.log("find and cat took %v", took.Round(time.Millisecond))
		return walk.m.addResident(mt)
	})
	if err != nil {
		return nil, err
	}
	s, err := b.hugeSession()
	if err != nil {
		return nil, err
	}
	list := result{what: "resident memory after `ls entries`, " + s.describe(), unit: unitBytes, goal: goal{bytes: 150 * megabyte}}
	err = b.withOurs(ctx, s.agent, &list.m, func(mt *mount) error {
		if _, err := command(ctx, mt.path(s.dir), "ls entries >/dev/null"); err != nil {
			return err
		}
		return list.m.addResident(mt)
	})
	return []result{walk, list}, err
}

func (m *measured) addResident(of *mount) error {
	mem, err := of.memory()
	m.ours = append(m.ours, float64(mem.resident))
	return err
}

// tailPause is between two lines of row l. It shares no period with the second at which tail looks.
const tailPause = 370 * time.Millisecond

// rowTail: how long after it was written a line comes out of tail -f.
func rowTail(ctx context.Context, b *bench) ([]result, error) {
	s, err := b.session(spec{name: "tail", entries: 400, bytes: 2 * megabyte})
	if err != nil {
		return nil, err
	}
	res := result{
		what: "`tail -f` of the raw file: from the write of a line until it is printed", peer: peerLoopback,
		goal: goal{seconds: 1, worst: true},
	}
	err = b.withOurs(ctx, s.agent, &res.m, func(mt *mount) error {
		return b.withLoopback(ctx, s.agent, func(lo *mount) error {
			ours, err := tailLatencies(ctx, mt.path(s.raw), s)
			if err != nil {
				return err
			}
			peer, err := tailLatencies(ctx, filepath.Join(lo.dir, s.raw), s)
			for i := range peer {
				res.m.addTime(ours[i], peer[i])
			}
			return err
		})
	})
	return []result{res}, err
}

// tailLatencies appends lines to a session's file and times each until tail -f of another path to it
// prints it.
func tailLatencies(ctx context.Context, file string, s *session) ([]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, appends*5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "tail", "-n0", "-f", file)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	time.Sleep(500 * time.Millisecond) // until tail has found the end of the file
	var took []time.Duration
	r := bufio.NewReader(out)
	for i := range appends {
		time.Sleep(tailPause)
		id := fmt.Sprintf("yy%06d", i)
		line := foreignLine(id, s.lastID, i)
		start := time.Now()
		if err := appendLine(s.file, line); err != nil {
			return nil, err
		}
		got, err := r.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if got != line {
			return nil, fmt.Errorf("tail printed %.80q, not %.80q", got, line)
		}
		took = append(took, time.Since(start))
	}
	return took, nil
}
