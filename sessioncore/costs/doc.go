// Package costs adds up what all sessions cost together, by day, working directory and model, and counts an answer
// once in however many files it stands (docs/design.md section 5).
//
//	all := costs.New(store, prices)
//	text, err := all.Lines(ctx, sessions, &hold)
//
// It reads every session once, and after that those that changed. It keeps sums and, for each entry that reports a
// usage, eight bytes, by which copies are known: never text.
package costs
