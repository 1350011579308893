package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/names"
	reports "sessionfs/sessioncore/report"
	"sessionfs/sessioncore/transfer"
	"sessionfs/sessioncore/view"
	"sessionfs/source"
)

// exportOptions are the options of export.
type exportOptions struct {
	session    string
	site       string // the directory of --all
	since      string
	ownGarbage bool // GOGC is not set by the user
}

// exportCommand is sessionfs export.
func exportCommand() *cobra.Command {
	var o exportOptions
	cmd := onSource(source.Sessions, &cobra.Command{
		Use:   "export [-s SOURCE] [--redact] SESSION > FILE.html | --all DIR",
		Short: "Write a session as one HTML page, or all of them as a site",
		Long: "Write a session as one HTML page: the tree of its entries, the current branch, then all others, with " +
			"images and the session's JSON Lines inside, to download; these have long outputs whole. The page loads " +
			"nothing; its one script searches and filters. SESSION is an id or its beginning, a path in a mount, or a " +
			".jsonl file; #ENTRY takes the branch to that entry alone. " +
			"Keys, tokens and passwords are shown as they are; --redact masks known ones, and leaves " +
			"images and lines out; -o redact-rules=FILE also those that rules of yours know, as gitleaks has. " +
			"--all writes a page for each session into DIR, which must be empty or such a site, and index.html, " +
			"which leads to them. Later it writes changed ones anew.",
		Example: "  sessionfs export 019d3d9 > page.html\n  sessionfs export --all ~/sessions-site",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.site != "" {
				return noArgs(cmd, args)
			}
			return oneArg(cmd, args)
		},
	}, func(cmd *cobra.Command, src *sourceTree, args []string) error {
		o.session = strings.Join(args, "")
		return runExport(cmd.Context(), o, src, consoleOf(cmd))
	})
	cmd.Flags().StringVar(&o.site, "all", "", "write a page for each session into `DIR`")
	_ = cmd.MarkFlagDirname("all") // the flag exists
	cmd.Flags().StringVar(&o.since, "since", "", "with --all, of sessions that changed since `WHEN`: 2026-01-31, 30d")
	masks(cmd)
	masked := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		o.ownGarbage = o.site == "" && os.Getenv("GOGC") == ""
		if o.ownGarbage {
			_ = os.Setenv("GOGC", strconv.Itoa(indexGarbage)) // the budget then leaves the percent as it is
		}
		return masked(cmd, args)
	}
	return cmd
}

// runExport writes the page of a session, or with --all a site of all sessions. --since needs --all.
func runExport(ctx context.Context, o exportOptions, src *sourceTree, c *console) error {
	switch {
	case o.site != "":
		return exportSite(ctx, o, src, c)
	case o.since != "":
		return refuse(exitUsage, "export: --since needs --all DIR")
	}
	return exportPage(ctx, o, src, c)
}

// exportPage writes the page of the session that a user names. It sets how much garbage there may be, unless the
// user has.
func exportPage(ctx context.Context, o exportOptions, src *sourceTree, c *console) error {
	at, err := src.Named(o.session)
	if err != nil {
		return err
	}
	if o.ownGarbage { // not before: to find the session may take a list
		debug.SetGCPercent(indexGarbage)
	}
	snap, subject, err := src.subject(ctx, at)
	if err != nil {
		return err
	}
	defer snap.Release()
	if o.ownGarbage {
		debug.SetGCPercent(pageGarbage)
	}
	err = view.Page(ctx, c.out, subject)
	masked := transfer.MaskedIn(snap.File())
	if err == nil && masked != nil {
		c.sayMasked("masked in the whole session", masked, "")
	}
	return err
}

// How much garbage there may be while a session is indexed and while its page is written, in
// percent of the live memory: little is live, and texts become garbage soon.
const (
	indexGarbage = 40
	pageGarbage  = 100
)

// maxModels is how many models of a session a page names.
const maxModels = 3

// subject returns a session with the subject of its page, or of a page of the branch to an entry alone. Callers
// must release the session.
func (src *sourceTree) subject(ctx context.Context, at source.NamedSession) (
	*sessioncore.Snapshot, view.Subject, error,
) {
	snap, bill, err := src.Spent(ctx, at.Dir)
	if err != nil {
		return nil, view.Subject{}, fmt.Errorf("%s: %w", at.Dir, err)
	}
	end, err := source.EndOf(snap, at.Entry)
	if err != nil {
		snap.Release()
		return nil, view.Subject{}, err
	}
	blobs := func(hash string) (io.ReadCloser, error) {
		return src.Open(path.Join("blobs", hash))
	}
	if src.Redact {
		blobs = nil // no rule finds a secret in an image
	}
	subject := view.Subject{
		Session: snap,
		End:     end,
		Alone:   at.Entry != "",
		Agent:   bill.Agent,
		Model:   shownModels(bill.Models),
		Cost:    bill.Dollars(),
		Blobs:   blobs,
	}
	agent := agents.Find(bill.Agent)
	if agent != nil {
		subject.Agent = agent.Title
	}
	if bill.TotalTokens > 0 {
		subject.Tokens = reports.Short(float64(bill.TotalTokens))
	}
	if bill.Listed != (reports.Decimal{}) {
		subject.Cost += " by list prices"
	}
	return snap, subject, nil
}

// shownModels returns the models of a bill, PROVIDER/MODEL each, as the text of a page: the first ones without
// their providers, and how many more there are.
func shownModels(models []string) string {
	var shown []string
	for _, model := range models {
		slash := strings.LastIndexByte(model, '/')
		isSum := slash < 0 // such as the sum of subagents
		if !isSum {
			shown = append(shown, model[slash+1:])
		}
	}
	more := ""
	if len(shown) > maxModels {
		more = fmt.Sprintf(" and %d more", len(shown)-maxModels)
		shown = shown[:maxModels]
	}
	return names.Visible(strings.Join(shown, ", ")) + more
}
