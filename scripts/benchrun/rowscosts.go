package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

// rowCosts: what all sessions cost, of a daemon that has seen none of them, and again. The peer indexes them: reading
// leaf takes the whole index, and tells next to nothing.
func rowCosts(ctx context.Context, b *bench) ([]result, error) {
	n := b.shrink(storeSessions)
	bytes := int64(b.shrink(storeBytes))
	agent, err := b.manySessions(n, storeEntries, bytes)
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(agent, "sessions/*/*.jsonl"))
	if err != nil || len(files) != n {
		return nil, fmt.Errorf("%d sessions instead of %d: %w", len(files), n, err)
	}
	peer := "`readlink leaf` in each session"
	what := fmt.Sprintf("`cat usage.jsonl`, %d sessions, %d MB", n, bytes/megabyte)
	res := []result{
		{what: what + ", cold daemon", peer: peer, goal: goal{ratio: 1.5}},
		{what: what + ", after one session grew", peer: peer, goal: goal{ratio: 0.1}},
		{what: "resident memory after that", unit: unitBytes, goal: goal{bytes: 150 * megabyte}},
	}
	err = b.repeat(func(run int) error {
		var indexed time.Duration
		err := b.withOurs(ctx, agent, nil, func(mt *mount) (err error) {
			indexed, err = expect(ctx, mt.dir, "find sessions -mindepth 3 -maxdepth 3 -name leaf -printf '%l\\n' | grep -c entries/", n)
			return err
		})
		if err != nil {
			return err
		}
		return b.withOurs(ctx, agent, &res[0].m, func(mt *mount) error {
			for i := range res[:2] {
				took, err := command(ctx, mt.dir, "cat usage.jsonl | grep -q claude")
				if err != nil {
					return err
				}
				if run > 0 {
					res[i].m.addTime(took, indexed)
				}
				if err := appendLine(files[n/2], foreignLine(fmt.Sprintf("zz%06d", 2*run+i), "", run)); err != nil {
					return err
				}
			}
			if run == 0 {
				return nil
			}
			return res[2].m.addResident(mt)
		})
	})
	return res, err
}
