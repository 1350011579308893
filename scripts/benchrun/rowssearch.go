package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// What a few sessions of the store have, and no other: words that the generator does not know.
const (
	rareWord   = "zygomorphic"
	rareFile   = "/home/dev/project-0/deep/syzygy.go"
	rareCopies = 5
)

// searchStore is the store of many sessions, in some of which a rare word is said and a rare file edited.
func (b *bench) searchStore() (agent, what string, err error) {
	n, bytes := b.shrink(storeSessions), int64(b.shrink(storeBytes))
	agent, err = b.manySessions(n, storeEntries, bytes)
	what = fmt.Sprintf("%d sessions, %d MB", n, bytes/megabyte)
	if err != nil || b.rare {
		return agent, what, err
	}
	files, err := filepath.Glob(filepath.Join(agent, "sessions/*/*.jsonl"))
	if err != nil || len(files) < rareCopies {
		return "", "", fmt.Errorf("%d sessions: %w", len(files), err)
	}
	for i := range rareCopies {
		said := strings.Replace(foreignLine(fmt.Sprintf("yy%06d", 2*i), "", i), "line ", rareWord+" line ", 1)
		call := fmt.Sprintf(`[{"type":"toolCall","id":"t%d","name":"edit","arguments":{"path":%q}}]`, i, rareFile)
		edited := strings.NewReplacer(`"role":"user"`, `"role":"assistant"`, fmt.Sprintf(`"line %d"`, i), call).
			Replace(foreignLine(fmt.Sprintf("yy%06d", 2*i+1), "", i))
		if err := appendLine(files[i*len(files)/rareCopies], said+edited); err != nil {
			return "", "", err
		}
	}
	b.rare = true
	settle()
	return agent, what, nil
}

// rowSearch: a word of a few sessions and a file that a few touched, of a daemon that has seen none of them, beside a
// scan of the raw files; and a word that is everywhere.
func rowSearch(ctx context.Context, b *bench) ([]result, error) {
	agent, store, err := b.searchStore()
	if err != nil {
		return nil, err
	}
	const peer = "`rg -F -i -l` over the raw files"
	res := []result{
		{what: "`ls search/WORD/sessions`, a word of five sessions of " + store + ", cold daemon", peer: peer, goal: goal{ratio: 1}},
		{what: "the same again", peer: peer, goal: goal{ratio: 0.1}},
		{what: "`ls by-file/FILE/sessions`, a file that five of them touched, cold daemon", peer: peer, goal: goal{ratio: 1.2}},
		{what: "`cat search/WORD/results.tsv`, a word of almost every entry: the first 1,000, cold daemon", goal: goal{seconds: 0.5}},
	}
	err = b.repeat(func(int) error {
		raw, err := expect(ctx, agent, "rg -F -i -l "+rareWord+" sessions | wc -l", rareCopies)
		if err != nil {
			return err
		}
		name, err := expect(ctx, agent, "rg -F -i -l "+filepath.Base(rareFile)+" sessions | wc -l", rareCopies)
		if err != nil {
			return err
		}
		for _, part := range []struct {
			lines []string
			want  int
			peer  time.Duration
			res   []result
		}{
			{[]string{"ls search/" + rareWord + "/sessions | wc -l", "ls search/" + rareWord + "/sessions | wc -l"}, rareCopies, raw, res[:2]},
			{[]string{"ls by-file" + rareFile + "/sessions | wc -l"}, rareCopies, name, res[2:3]},
			{[]string{"cat search/reader/results.tsv | grep -c sessions/"}, 1000, 0, res[3:]},
		} {
			err := b.withOurs(ctx, agent, &part.res[0].m, func(mt *mount) error {
				for i, line := range part.lines {
					took, err := expect(ctx, mt.dir, line, part.want)
					if err != nil {
						return err
					}
					part.res[i].m.addTime(took, part.peer)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return res, err
}
