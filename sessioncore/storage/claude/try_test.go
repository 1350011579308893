package claude

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"

	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/storage/foreign"
)

func TestTry(t *testing.T) {
	for _, f := range []string{os.Getenv("TRY")} {
		b, _ := os.ReadFile(f)
		c := newConverter(foreign.About{ID: "x"})
		var out []byte
		_, err := jsonl.Load(context.Background(), bytes.NewReader(b), jsonl.Position{}, int64(len(b)), func(u *jsonl.Unit) error {
			if u.Kind == jsonl.ObjectUnit {
				out = c.Add(out, u.Text, u.Line)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%s", c.Tail(out))
	}
}
