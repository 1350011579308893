package agentstest

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/sessiontest"
)

// maxReadings bounds the readings of a file, as in package agents.
const maxReadings = 4

// ConvertWork returns the work of the conversion of a file, and of the pieces of its tail at the end.
func ConvertWork(t testing.TB, newConverter func() *agents.Builder, file string) sessiontest.Work {
	return sessiontest.WorkOf(func() {
		var out []byte
		c := newConverter()
		for range maxReadings {
			out = out[:0]
			emit := func(u *jsonl.Unit) error {
				if u.Kind == jsonl.ObjectUnit {
					out = c.AddUnit(out[:0], u)
				}
				return nil
			}
			r := strings.NewReader(file)
			records := jsonl.Records{Inner: c.InnerKey, RawControls: c.RawControls}
			_, err := records.Load(context.Background(), r, jsonl.Position{}, r.Size(), emit)
			require.NoError(t, err)
			out = c.Tail(out)
			c = c.Restart()
			if c == nil {
				break
			}
		}
	})
}
