package layout

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// FuzzLeafTarget: a target names an entry of the session, the place before the first one, or nothing; it means the same
// with "./" before it, with slashes doubled, and by its way through sessions/; and what it names is found by its file too.
func FuzzLeafTarget(f *testing.F) {
	for _, target := range []string{
		"a", "b.json", "entries/b.json", "entries/x%2Fy.json", "tree", "tree/a/b", "tree/a/b/entry.json", "tree/.deep", "branches/current",
		"branches/.by-id/a", "branches/last/path/000002-custom-b.json", "by-label/first", "by-label/with%2Fslash", "../my session/entries/a.json",
		"/m/by-id/key/entries/a.json", "/sessions/p/other/entries/a.json", "../../../etc/passwd", "entries/../a", "./tree", "%65ntries", "~3", "\xff", "",
	} {
		f.Add(target)
	}
	files := memory.New()
	require.NoError(f, files.WriteFile("p/my session.jsonl", []byte(referenceSession)))
	store := sessioncore.NewStore(files)
	f.Cleanup(store.Close)
	snap, err := store.Session("p/my session.jsonl").Acquire(context.Background())
	require.NoError(f, err)
	f.Cleanup(snap.Release)
	r := &Reference{Session: "p/my session", Follow: followTable}
	f.Fuzz(func(t *testing.T, target string) {
		ctx := context.Background()
		e, err := r.Find(ctx, snap, target)
		if err != nil {
			require.True(t, errors.Is(err, sessioncore.ErrInvalid) || errors.Is(err, sessioncore.ErrNotFound) || errors.Is(err, ErrLeadsNowhere), "%q: %v", target, err)
		} else if e != sessioncore.NoEntry {
			require.True(t, e >= 0 && int(e) < snap.Len())
			again, err := r.Find(ctx, snap, Entries+"/"+snap.Name(e)+EntrySuffix)
			require.NoError(t, err)
			require.Equal(t, e, again)
		}
		same := []string{strings.ReplaceAll(target, "/", "//")}
		if target != "" && !strings.HasPrefix(target, "/") && !strings.HasPrefix(target, "../") {
			same = append(same, "./"+target, "/anywhere/sessions/p/my session/"+target)
		}
		for _, other := range same {
			if strings.HasPrefix(other, "/a") && (err != nil || strings.Contains(target, "sessions") || strings.Contains(target, "by-id") || strings.HasPrefix(target, ".")) {
				continue // a path that goes through the root again means what is there
			}
			got, otherErr := r.Find(ctx, snap, other)
			require.Equal(t, err == nil, otherErr == nil, "%q: %v, %q: %v", target, err, other, otherErr)
			require.Equal(t, e, got, "%q and %q", target, other)
		}
	})
}
