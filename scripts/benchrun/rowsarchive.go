package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// rowArchive: the first listing of a compressed session unpacks it.
func rowArchive(ctx context.Context, b *bench) ([]result, error) {
	s, err := b.longSession()
	if err != nil {
		return nil, err
	}
	agent := filepath.Join(b.dir, "archived")
	file := filepath.Join(agent, "archive", s.raw+".gz")
	if _, err := os.Stat(file); err != nil {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return nil, err
		}
		if err := os.MkdirAll(filepath.Join(agent, "sessions"), 0o755); err != nil {
			return nil, err
		}
		if _, err := command(ctx, b.dir, "gzip -c '"+s.file+"' >'"+file+"'"); err != nil {
			return nil, err
		}
		settle()
	}
	res := []result{
		{what: "first `ls -U entries \\| wc -l` of the same session in a .gz", peer: "`zcat \\| wc -l`", goal: goal{ratio: 1.5}},
		{what: "peak memory of the daemon in that", unit: unitBytes, goal: goal{bytes: 150 * megabyte}},
	}
	err = b.repeat(func(int) error {
		return b.withOurs(ctx, agent, &res[0].m, func(mt *mount) error {
			ours, err := expect(ctx, mt.path("archive/"+strings.TrimPrefix(s.dir, "sessions/")), "ls -U entries | wc -l", s.entries)
			if err != nil {
				return err
			}
			peer, err := expect(ctx, agent, "zcat '"+file+"' | wc -l", 1+s.entries+s.bad)
			res[0].m.addTime(ours, peer)
			if err != nil {
				return err
			}
			mem, err := mt.memory()
			res[1].m.ours = append(res[1].m.ours, float64(mem.peak))
			return err
		})
	})
	return res, err
}
