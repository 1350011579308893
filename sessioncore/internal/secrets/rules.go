package secrets

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// gitleaksFile is the rule file of gitleaks, and moreFile our own, with what that one lacks.
var (
	//go:embed gitleaks/gitleaks.toml
	gitleaksFile string
	//go:embed rules.toml
	moreFile string
)

// A keyword that is in nearly every text would have its rule tried everywhere; each match of the rule contains the one
// given here as well.
var rarerKeyword = map[string]string{"jwt": ".ey", "kubernetes-secret-yaml": "kind:"}

// atKeyword are rules of gitleaks of which each match begins with a keyword, one that is short: they are not tried on a
// whole text. notAtKeyword are those of our own of which it does not.
var (
	atKeyword = []string{
		"authress-service-client-access-key", "aws-access-token", "sendgrid-api-token", "square-access-token", "twilio-api-key", "vault-service-token",
	}
	notAtKeyword = []string{"azure-ad-client-secret", "azure-devops-token", "new-relic-license-key"}
)

// wordBegins matches a rule that begins where a word does. One whose keyword is no word is left as
// it is.
var wordBegins = regexp.MustCompile(`^((?:\(\?i\))?)\\b([^:].*)$`)

// commonKeyword are rules whose keywords stand in names of other things: cache_key_<hash>.
var commonKeyword = []string{
	"cursor-api-key", "launchdarkly-key", "live-key", "mailgun-api-key", "notion-token", "resend-api-key",
	"fireworks-api-key", "crates-io-token", "bearer-token", "azure-sas-signature",
}

// notForText are rules that mean something only in files of a certain name, which text in a session has not.
var notForText = []string{"hashicorp-tf-password"}

// wholeMatch are rules whose groups are only parts of the secret.
var wholeMatch = []string{"jwt-base64", "microsoft-teams-webhook"}

// vague are rules that know secrets only by what stands before them; each other rule says more.
var vague = []string{
	"generic-api-key", "url-password", "authorization-header", "bearer-token", "password-assignment", "password-parameter",
	"secret-assignment", "secret-parameter", "secret-argument", "secret-pair", "command-password", "password-argument",
	"json-web-token", "sk-api-key",
}

// atEnd is what must stand after many a token for gitleaks, which reads files of settings: in a sentence there can be a full
// stop or a bracket as well.
const atEnd = "(?:[\\x60'\"\\s;]|\\\\[nr]|$)"

// Rules are what secrets are known by. They never change. Their regular expressions are compiled when one of their
// keywords is first seen, as compiling all of them takes 100 ms.
type Rules struct {
	rules    []*rule
	allow    []*allowed // of all rules
	keywords *words
	byWord   [][]int // the rules that a keyword belongs to
	always   []int   // the rules without one
}

// Known returns the rules that are part of the program, which are read when they are first needed.
var Known = sync.OnceValue(func() *Rules {
	set := &Rules{}
	for _, file := range []string{gitleaksFile, moreFile} {
		s, err := parse(file)
		if err != nil {
			panic(err) // the file is a part of the program, and a test reads it
		}
		var rules []*rule
		for _, text := range s.Rules {
			if text.Regex == "" || slices.Contains(notForText, text.ID) {
				continue
			}
			if file == gitleaksFile && strings.HasPrefix(strings.TrimPrefix(text.Regex, "(?i)"), `\b`) {
				text.Regex = strings.ReplaceAll(text.Regex, atEnd, `(?:[^\w+/=~-]|$)`)
			}
			r := newRule(text)
			if rarer, ok := rarerKeyword[text.ID]; ok {
				r.keywords = []string{rarer}
			}
			r.whole = slices.Contains(wholeMatch, text.ID)
			if slices.Contains(atKeyword, text.ID) || r.beginsWithKeyword() ||
				file == moreFile && !slices.Contains(notAtKeyword, text.ID) {
				r.anchor(r.text)
			}
			rules = append(rules, r)
		}
		set = set.with(rules, s.allowlists())
	}
	return set
})

// with returns the rules with others, which take the place of those with their ids, and with what they allow.
func (set *Rules) with(rules []*rule, lists []allowText) *Rules {
	out := &Rules{allow: slices.Clip(set.allow)}
	for _, r := range set.rules {
		if !slices.ContainsFunc(rules, func(other *rule) bool { return other.id == r.id }) {
			out.rules = append(out.rules, r)
		}
	}
	out.rules = append(out.rules, rules...)
	for _, list := range lists {
		a := newAllowed(list)
		switch {
		case a == nil:
		case len(list.TargetRules) == 0:
			out.allow = append(out.allow, a)
		default:
			out.allowIn(list.TargetRules, a)
		}
	}
	out.index()
	return out
}

// allowIn adds a list to the rules with these ids.
func (set *Rules) allowIn(ids []string, a *allowed) {
	for i, r := range set.rules {
		if slices.Contains(ids, r.id) {
			changed := *r
			changed.allow = append(slices.Clip(r.allow), a)
			set.rules[i] = &changed
		}
	}
}

// index makes what finds the rules of a text.
func (set *Rules) index() {
	var keywords []string
	known := map[string]int{}
	for n, r := range set.rules {
		if len(r.keywords) == 0 {
			set.always = append(set.always, n)
		}
		for _, word := range r.keywords {
			at, ok := known[word]
			if !ok {
				at = len(keywords)
				known[word], keywords, set.byWord = at, append(keywords, word), append(set.byWord, nil)
			}
			set.byWord[at] = append(set.byWord[at], n)
		}
	}
	set.keywords = newWords(keywords)
}

// rule is one kind of secret. It never changes.
type rule struct {
	id       string
	text     string   // the regular expression, as it is written
	keywords []string // in lower case; a text that has none of them is not searched
	entropy  float64  // a secret has more, in bits per byte
	group    int      // that holds the secret; 0 for the first that is not empty
	whole    bool     // the match is the secret
	allow    []*allowed
	// anchored says that every match begins with a keyword. The expression then begins with the byte before it.
	anchored bool
	// separate says that a match does not begin within a word, and common that names of other
	// things go on with its keyword behind an underscore.
	separate, common bool
	regex            func() *regexp.Regexp
}

// anyBefore is how the rules begin that know a secret by the name before it, their keyword: an attempt at each of 50 positions before the keyword, which changes neither
// whether there is a match nor what the secret is.
const anyBefore = `[\w.-]{0,50}?`

func newRule(text ruleText) *rule {
	r := &rule{id: text.ID, text: text.Regex, entropy: text.Entropy, group: text.SecretGroup}
	for _, word := range text.Keywords {
		r.keywords = append(r.keywords, strings.ToLower(word))
	}
	if slices.ContainsFunc(r.keywords, func(word string) bool { return len(word) < minKeyword || word[0] >= utf8.RuneSelf }) {
		r.keywords = nil
	}
	for _, list := range append(text.Allowlists, text.Allowlist) {
		if a := newAllowed(list); a != nil {
			r.allow = append(r.allow, a)
		}
	}
	r.regex = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(r.text) })
	for _, begin := range []string{`(?i:`, `(?i)`} {
		if rest, ok := strings.CutPrefix(strings.TrimPrefix(text.Regex, anyBefore), begin+anyBefore); ok && len(r.keywords) > 0 {
			r.anchor(begin + rest)
		}
	}
	return r
}

// beginsWithKeyword reports whether each match begins with the only keyword, as its expression
// says.
func (r *rule) beginsWithKeyword() bool {
	begin := wordBegins.FindStringSubmatch(r.text)
	return begin != nil && len(r.keywords) == 1 &&
		strings.HasPrefix(strings.ToLower(strings.TrimLeft(begin[2], "(")), regexp.QuoteMeta(r.keywords[0])) &&
		!strings.Contains(begin[2], `|\b`)
}

// anchor makes a rule one whose matches begin with a keyword.
func (r *rule) anchor(regex string) {
	if !r.anchored {
		r.anchored, r.common = true, slices.Contains(commonKeyword, r.id)
		if begin := wordBegins.FindStringSubmatch(regex); begin != nil {
			r.separate, regex = true, begin[1]+begin[2] // beginsWord knows more than \b
		}
		r.regex = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\A(?s:.)(?:` + regex + `)`) })
	}
}

// allowed is a list of what is no secret though a rule matches.
type allowed struct {
	target string // what the expression is about: the secret (""), the "match" or the "line"
	all    bool   // both the expression and the words say so
	regex  func() *regexp.Regexp
	words  *words
}

// newAllowed returns a list, nil for one that is only about files, which text in a session has not.
func newAllowed(text allowText) *allowed {
	a := &allowed{target: text.RegexTarget, all: text.needsAll()}
	if a.all && len(text.Paths)+len(text.Commits) > 0 || len(text.Regexes)+len(text.Stopwords) == 0 {
		return nil
	}
	if len(text.Regexes) > 0 {
		a.regex = sync.OnceValue(func() *regexp.Regexp {
			return regexp.MustCompile("(?:" + strings.Join(text.Regexes, ")|(?:") + ")")
		})
	}
	if len(text.Stopwords) > 0 {
		a.words = newWords(text.Stopwords)
	}
	return a
}

// allows reports whether the secret text[m.start:m.end] is none.
func (a *allowed) allows(text []byte, m match) bool {
	secret := text[m.start:m.end]
	if a.words != nil {
		if has := !a.words.find(secret, func(int, int) bool { return false }); has != a.all {
			return has
		}
	}
	if a.regex == nil {
		return a.all
	}
	switch a.target {
	case "match":
		secret = text[m.from:m.to]
	case "line":
		secret = lineAround(text, m.from, m.to)
	}
	return a.regex().Match(secret)
}
