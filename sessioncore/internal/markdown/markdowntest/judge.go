package markdowntest

import (
	"math/rand/v2"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// Judges are parsers that determine what Markdown means: a CommonMark parser that shares no code with ours, without
// and with GitHub's extensions.
var Judges = map[string]parser.Parser{
	"CommonMark": goldmark.New().Parser(),
	"GitHub":     goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote)).Parser(),
}

// Verdict is what a judge finds in a document.
type Verdict struct {
	Headings []string // of the first two levels, which are ours; with the kind of the parent if that is not the document
	Links    []string // targets of links and images
	Wrong    []string // raw HTML, and definitions of links and footnotes
}

// Judge returns what a parser finds in a document.
func Judge(p parser.Parser, source []byte) (v Verdict) {
	ctx := parser.NewContext()
	doc := p.Parse(text.NewReader(source), parser.WithContext(ctx))
	for _, r := range ctx.References() {
		v.Wrong = append(v.Wrong, "a link is defined: "+string(r.Label()))
	}
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			if n.Level <= 2 {
				heading := string(n.Lines().Value(source))
				parent := n.Parent().Kind()
				if parent != ast.KindDocument {
					heading += " in " + parent.String()
				}
				v.Headings = append(v.Headings, heading)
			}
		case *ast.Link:
			v.Links = append(v.Links, string(n.Destination))
		case *ast.Image:
			v.Links = append(v.Links, string(n.Destination))
		case *ast.HTMLBlock, *ast.RawHTML:
			v.Wrong = append(v.Wrong, n.Kind().String())
		default:
			if strings.HasPrefix(n.Kind().String(), "Footnote") {
				v.Wrong = append(v.Wrong, n.Kind().String())
			}
		}
		return ast.WalkContinue, nil
	})
	return v
}

// markdownTokens are the parts of hostile texts.
var markdownTokens = []string{
	"\n", "\n", "\n", "\n\n", " ", " ", "  ", "   ", "    ", "\t", "a", "b c", "```", "````", "~~~", "`", "``", "`", "\\", "\\\n",
	"|", "|", "-|-", "--|--", "\n-|-\n", ":-", "---", "===", "-", "- ", "* ", "+ ", "1. ", "2) ", "12. ", "> ", ">", "# ", "## ", "##", "#",
	"<b>", "</b>", "<div>", "<!--", "-->", "<script>", "<?x", "<![CDATA[", "<a href='", "<https://x.y/z>", "<http:a`b>", "<mailto:a@b>",
	"https://x.y/", "www.x.y", "](", "](`", "](<1", "](x \"", ")", "(", "![", "[a]: b", "[^a]: b", "[a", "]: c", "[a]", "<pre", "'", "\"", "<",
}

// HostileText returns a random text of tokens that matter in Markdown.
func HostileText(rnd *rand.Rand) string {
	var b strings.Builder
	const most = 24 // tokens
	for range 1 + rnd.IntN(most) {
		token := markdownTokens[rnd.IntN(len(markdownTokens))]
		b.WriteString(token)
	}
	return b.String()
}
