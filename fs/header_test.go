package fs_test

import (
	"context"
	"encoding/json"
	iofs "io/fs"
	"log/slog"
	"path"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	sessionfs "sessionfs/fs"
	"sessionfs/mountopts"
)

// TestHeader: the header that a command reads without a conversion has the id, the type and the working directory of
// header.json.
func TestHeader(t *testing.T) {
	type facts struct{ Type, ID, CWD string }
	parse := func(text []byte) (f facts) {
		require.NoError(t, json.Unmarshal(text, &f), string(text))
		return f
	}
	ctx := context.Background()
	for _, store := range []string{"demo", "demo-claude", "demo-codex"} {
		source := filepath.Join("../testdata", store)
		u, err := sessionfs.Open(mountopts.Options{Source: source, ReadOnly: true}, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		all, err := u.Sessions(ctx)
		require.NoError(t, err)
		require.NotEmpty(t, all)
		for _, info := range all {
			header, err := u.Header(ctx, info.Path())
			require.NoError(t, err)
			whole, err := iofs.ReadFile(u, path.Join(info.Path(), "header.json"))
			require.NoError(t, err)
			require.Equal(t, parse(whole), parse(header))
		}
		_, err = u.Header(ctx, all[0].Path()+"-gone")
		require.ErrorIs(t, err, iofs.ErrNotExist)
		u.Close()
	}
}
