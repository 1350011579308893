package report_test

import (
	"context"
	"fmt"
	"log"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/report"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

const weather = `{"type":"session","version":3,"id":"w","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/srv/weather"}
{"type":"message","id":"a1","timestamp":"2026-02-16T10:20:32.000Z","message":{"role":"assistant","provider":"anthropic","model":"claude-sonnet-4-5","content":[],"usage":{"input":2000,"output":1000}}}
`

// Costs are added up by day, directory and model. An answer without a recorded cost gets one by list prices.
func ExampleNewCosts() {
	files := memory.New()
	err := files.WriteFile("weather/2026-02-16T10-20-30-000Z_w.jsonl", []byte(weather))
	if err != nil {
		log.Fatal(err)
	}
	store := sessioncore.NewStore(files)
	defer store.Close()
	sessions, err := listing.New(store, "").Sessions(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	costs := report.NewCosts(store, report.ListPrices)
	err = costs.Rows(context.Background(), sessions.All(), func(r report.Row) error {
		fmt.Println(r.Day.Format("2006-01-02"), r.Session.CWD, r.Model, r.Sum.TotalTokens, r.Sum.Dollars())
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// 2026-02-16 /srv/weather anthropic/claude-sonnet-4-5 3000 $0.02
}
