package opencode

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/agents/agentstest"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage/storagetest"
)

// TestManyParts: the work for a prompt or a summary grows with it, and not with its square, however many parts it has.
func TestManyParts(t *testing.T) {
	sessiontest.NotUnderRace(t)
	for role, more := range map[string]string{"user": "", "assistant": `,"summary":true`} {
		t.Run(role, func(t *testing.T) {
			info := fmt.Sprintf(`{"role":%q,"time":{"created":1001}%s}`, role, more)
			const few = 2000
			once := partsWork(t, info, few)
			const times = 4
			fourTimes := partsWork(t, info, times*few)
			const buffers = 16 << 20 // of long lines
			require.Less(t, fourTimes, 2*times*once+buffers, "its square is 16 times as much; memory grows in steps")
		})
	}
}

// partsWork returns the work for a session with one message of n parts.
func partsWork(t *testing.T, info string, n int) int64 {
	d := newDatabase(t, tables)
	d.session("ses_1", "Herons", 9)
	d.info("ses_1", "msg_1", 1001, info)
	require.NoError(t, d.conn.Exec("BEGIN"))
	for i := range n {
		d.part("ses_1", "msg_1", fmt.Sprintf("prt_%06d", i), `{"type":"text","text":"heron"}`)
	}
	require.NoError(t, d.conn.Exec("COMMIT"))
	name := "-srv-pond/ses_1.jsonl"
	home := d.home()
	raw := storagetest.Open(t, home, name)
	newConverter := func() *agents.Builder { return home.Converter(home.FactsAbout(name), raw) }
	return agentstest.ConvertWork(t, newConverter, storagetest.ReadObject(t, raw)).Sum()
}
