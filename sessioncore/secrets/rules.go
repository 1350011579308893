package secrets

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// gitleaksFile is the rule file of gitleaks, and moreFile holds our own rules.
var (
	//go:embed gitleaks/gitleaks.toml
	gitleaksFile string
	//go:embed rules.toml
	moreFile string
)

// rarerKeyword replaces keywords that nearly every text has, so that their rules are not tried
// everywhere. Each match of the rule contains the replacement too.
var rarerKeyword = map[string]string{"jwt": ".ey", "kubernetes-secret-yaml": "kind:"}

// atKeyword are rules of gitleaks with matches that all begin with a short keyword, so that they need not
// be tried on a whole text. notAtKeyword are our own rules with other matches.
var (
	atKeyword = []string{
		"authress-service-client-access-key", "aws-access-token", "sendgrid-api-token", "square-access-token",
		"twilio-api-key", "vault-service-token",
	}
	notAtKeyword = []string{"azure-ad-client-secret", "azure-devops-token", "new-relic-license-key", "go-dsn-password"}
)

// wordBegins matches an expression that begins at a word boundary.
var wordBegins = regexp.MustCompile(`^((?:\(\?i\))?)\\b([^:].*)$`)

// commonKeyword are rules with keywords that are also parts of other names, as in cache_key_<hash>.
var commonKeyword = []string{
	"cursor-api-key", "launchdarkly-key", "live-key", "mailgun-api-key", "notion-token", "resend-api-key",
	"fireworks-api-key", "crates-io-token", "bearer-token", "azure-sas-signature",
}

// notForText are rules for files of certain names, which text in a session does not have.
var notForText = []string{"hashicorp-tf-password"}

// matchRules are rules with the whole match as the secret; their groups are only parts of it.
var matchRules = []string{"jwt-base64", "microsoft-teams-webhook"}

// vague are rules that know a secret only by the text before it. Overlapping others are preferred.
var vague = []string{
	"generic-api-key", "url-password", "authorization-header", "bearer-token", "password-assignment",
	"password-parameter", "secret-assignment", "secret-parameter", "secret-argument", "secret-pair", "command-password",
	"password-argument", "url-token", "proxy-password", "go-dsn-password", "curl-proxy-password", "cookie", "cookies", "cookie-value",
	"cookie-file", "quoted-argument", "tool-argument", "login-password", "bind-password", "pass-variable", "sql-password",
	"pgpass-password",
	"json-web-token", "sk-api-key",
}

// atEnd is the end of many tokens in gitleaks, which reads settings files. Known replaces it, as in
// prose a full stop or a bracket may follow.
const atEnd = "(?:[\\x60'\"\\s;]|\\\\[nr]|$)"

// Rules is an immutable set of rules. A rule's expression is compiled when one of its keywords
// first occurs, as compiling all of them takes 100 ms.
type Rules struct {
	rules    []*rule
	allow    []*allowed // of all rules
	keywords *words
	byWord   [][]int // the numbers of the rules of each keyword
	always   []int   // the rules without a keyword
}

// Known returns the rules that are part of the program. They are parsed on first use.
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
			rules = append(rules, knownRule(text, file == gitleaksFile))
		}
		set = set.with(rules, s.allowlists())
	}
	return set
})

// knownRule returns a rule of the program: one of gitleaks, or one of our own.
func knownRule(text ruleText, isGitleaks bool) *rule {
	expression := strings.TrimPrefix(text.Regex, "(?i)")
	if isGitleaks && strings.HasPrefix(expression, `\b`) {
		text.Regex = strings.ReplaceAll(text.Regex, atEnd, `(?:[^\w+/=~-]|$)`)
	}
	r := newRule(text)
	rarer, hasRarer := rarerKeyword[text.ID]
	if hasRarer {
		r.keywords = []string{rarer}
	}
	r.isMatch = slices.Contains(matchRules, text.ID)
	isAtKeyword := slices.Contains(atKeyword, text.ID)
	if !isGitleaks && !slices.Contains(notAtKeyword, text.ID) {
		isAtKeyword = true
	}
	if isAtKeyword || r.beginsWithKeyword() {
		r.anchor(r.text)
	}
	return r
}

// with returns a new set with more rules, which replace rules of the same id, and with allowlists. A list with
// target rules is for these alone. The set itself does not change.
func (set *Rules) with(rules []*rule, lists []allowText) *Rules {
	out := &Rules{allow: slices.Clip(set.allow)}
	for _, r := range set.rules {
		isReplaced := slices.ContainsFunc(rules, func(other *rule) bool {
			return other.id == r.id
		})
		if !isReplaced {
			out.rules = append(out.rules, r)
		}
	}
	out.rules = append(out.rules, rules...)
	for _, list := range lists {
		a := newAllowed(list)
		switch {
		case a == nil: // it is about files
		case len(list.TargetRules) == 0:
			out.allow = append(out.allow, a)
		default:
			out.allowIn(list.TargetRules, a)
		}
	}
	out.index()
	return out
}

// allowIn adds a list to the rules with these ids. It replaces the rules in the set, as another set may have them,
// too.
func (set *Rules) allowIn(ids []string, a *allowed) {
	for i, r := range set.rules {
		if slices.Contains(ids, r.id) {
			changed := *r
			changed.allow = append(slices.Clip(r.allow), a)
			set.rules[i] = &changed
		}
	}
}

// index sets byWord, always and keywords from the rules.
func (set *Rules) index() {
	var keywords []string
	numbers := map[string]int{} // of the keywords
	for n, r := range set.rules {
		if len(r.keywords) == 0 {
			set.always = append(set.always, n)
		}
		for _, word := range r.keywords {
			number, isKnown := numbers[word]
			if !isKnown {
				number = len(keywords)
				numbers[word] = number
				keywords = append(keywords, word)
				set.byWord = append(set.byWord, nil)
			}
			set.byWord[number] = append(set.byWord[number], n)
		}
	}
	set.keywords = newWords(keywords)
}

// rule is one kind of secret. It is immutable.
type rule struct {
	id       string
	text     string   // the regular expression, as it is written
	keywords []string // in lower case; the rule is tried only on text that has one
	entropy  float64  // a secret has more, in bits per byte
	group    int      // that holds the secret; 0 for the first that is not empty
	isMatch  bool     // the match is the secret, whatever groups it has
	allow    []*allowed
	// anchored says that each match begins with a keyword, and the expression with the byte before.
	anchored bool
	// separate says that a match does not begin within a word, and common that its keyword after an
	// underscore is part of another name.
	separate, common bool
	regex            func() *regexp.Regexp
}

// anyBefore begins the rules that know a secret by the name before it: up to 50 bytes before the
// keyword. newRule cuts it off, which changes neither whether a rule matches nor the secret.
const anyBefore = `[\w.-]{0,50}?`

// newRule returns the rule of a text. It is anchored if its expression begins with a name before the secret.
func newRule(text ruleText) *rule {
	r := &rule{
		id:      text.ID,
		text:    text.Regex,
		entropy: text.Entropy,
		group:   text.SecretGroup,
	}
	for _, word := range text.Keywords {
		r.keywords = append(r.keywords, strings.ToLower(word))
	}
	isUnusable := func(word string) bool {
		return len(word) < minKeyword || word[0] >= utf8.RuneSelf
	}
	if slices.ContainsFunc(r.keywords, isUnusable) {
		r.keywords = nil // the rule is tried on every text
	}
	for _, list := range append(text.Allowlists, text.Allowlist) {
		a := newAllowed(list)
		if a != nil {
			r.allow = append(r.allow, a)
		}
	}
	r.regex = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(r.text)
	})
	if len(r.keywords) == 0 {
		return r
	}
	expression := strings.TrimPrefix(text.Regex, anyBefore)
	for _, begin := range []string{`(?i:`, `(?i)`} {
		rest, hasName := strings.CutPrefix(expression, begin+anyBefore)
		if hasName {
			r.anchor(begin + rest)
		}
	}
	return r
}

// beginsWithKeyword reports whether, by its expression, each match begins with the only keyword.
func (r *rule) beginsWithKeyword() bool {
	begin := wordBegins.FindStringSubmatch(r.text)
	if begin == nil || len(r.keywords) != 1 {
		return false
	}
	rest := begin[2]
	hasAlternative := strings.Contains(rest, `|\b`)
	if hasAlternative {
		return false
	}
	first := strings.ToLower(strings.TrimLeft(rest, "("))
	return strings.HasPrefix(first, regexp.QuoteMeta(r.keywords[0]))
}

// anchor makes the rule match only at its keywords, by an expression that begins with one. It does nothing for a
// rule that is anchored already.
func (r *rule) anchor(regex string) {
	if r.anchored {
		return
	}
	r.anchored = true
	r.common = slices.Contains(commonKeyword, r.id)
	begin := wordBegins.FindStringSubmatch(regex)
	if begin != nil {
		r.separate = true
		regex = begin[1] + begin[2] // beginsWord knows more than \b
	}
	r.regex = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\A(?s:.)(?:` + regex + `)`)
	})
}

// allowed is a list of exceptions: matches of rules that are no secrets.
type allowed struct {
	target string // of the expression: the secret (""), the "match" or the "line"
	all    bool   // the expression and the words must both match
	regex  func() *regexp.Regexp
	words  *words
}

// newAllowed returns the list, or nil if it is only about files, as text has no file name.
func newAllowed(text allowText) *allowed {
	a := &allowed{target: text.RegexTarget, all: text.needsAll()}
	isOfFiles := len(text.Paths) > 0 || len(text.Commits) > 0
	isOfTexts := len(text.Regexes) > 0 || len(text.Stopwords) > 0
	needsFile := a.all && isOfFiles
	if needsFile || !isOfTexts {
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

// allows reports whether the list excepts the match m of a text: by one of its words and expressions, or only by
// both; see all.
func (a *allowed) allows(text []byte, m match) bool {
	secret := text[m.start:m.end]
	if a.words != nil {
		hasNone := a.words.find(secret, func(int, int) bool {
			return false // one word suffices
		})
		hasWord := !hasNone
		isDecided := hasWord != a.all // by the words alone
		if isDecided {
			return hasWord
		}
	}
	if a.regex == nil {
		return a.all
	}
	target := secret
	switch a.target {
	case "match":
		target = text[m.from:m.to]
	case "line":
		target = lineAround(text, m.from, m.to)
	}
	return a.regex().Match(target)
}
