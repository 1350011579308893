package secrets

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"
)

//go:embed gitleaks/gitleaks.toml
var ruleFile string

// settings is what is used of the rule file.
type settings struct {
	Rules     []ruleText
	Allowlist allowText
}

type ruleText struct {
	ID, Regex, Path string
	Entropy         float64
	SecretGroup     int
	Keywords        []string
	Allowlists      []allowText
}

type allowText struct {
	Condition, RegexTarget    string
	Regexes, Paths, Stopwords []string
}

// A keyword that is in nearly every text would have its rule tried everywhere; each match of the rule contains the one
// given here as well.
var rarerKeyword = map[string]string{"jwt": ".ey", "kubernetes-secret-yaml": "kind:"}

// atKeyword are rules of which each match begins with a keyword, one that is short: they are not tried on a whole text.
var atKeyword = []string{
	"authress-service-client-access-key", "aws-access-token", "sendgrid-api-token", "square-access-token", "twilio-api-key", "vault-service-token",
}

// notForText are rules that mean something only in files of a certain name, which text in a session has not.
var notForText = []string{"hashicorp-tf-password"}

// wholeMatch are rules whose groups are only parts of the secret.
var wholeMatch = []string{"jwt-base64", "microsoft-teams-webhook"}

// ruleSet is all rules. Their regular expressions are compiled when one of their keywords is first seen, as compiling
// all of them takes 100 ms.
type ruleSet struct {
	rules    []*rule
	keywords *words
	byWord   [][]int // the rules that a keyword belongs to
	allow    *allowed
}

// allRules returns the rules, which are read when they are first needed.
var allRules = sync.OnceValue(func() *ruleSet {
	var s settings
	if _, err := toml.Decode(ruleFile, &s); err != nil {
		panic(err) // the file is a part of the program, and a test reads it
	}
	set := &ruleSet{allow: newAllowed(s.Allowlist)}
	var keywords []string
	for _, text := range s.Rules {
		if text.Regex == "" || slices.Contains(notForText, text.ID) {
			continue
		}
		if rarer, ok := rarerKeyword[text.ID]; ok {
			text.Keywords = []string{rarer}
		}
		for _, word := range text.Keywords {
			at := slices.Index(keywords, word)
			if at < 0 {
				at = len(keywords)
				keywords, set.byWord = append(keywords, word), append(set.byWord, nil)
			}
			set.byWord[at] = append(set.byWord[at], len(set.rules))
		}
		set.rules = append(set.rules, newRule(text))
	}
	set.keywords = newWords(keywords)
	return set
})

// rule is one kind of secret.
type rule struct {
	id      string
	entropy float64 // a secret has more, in bits per byte
	group   int     // that holds the secret; 0 for the first that is not empty
	whole   bool    // the match is the secret
	allow   []*allowed
	// anchored says that every match begins with a keyword. The expression then begins with the byte before it.
	anchored bool
	regex    func() *regexp.Regexp
}

// anyBefore is how the rules begin that know a secret by the name before it, their keyword: an attempt at each of 50 positions before the keyword, which changes neither
// whether there is a match nor what the secret is.
const anyBefore = `[\w.-]{0,50}?`

func newRule(text ruleText) *rule {
	r := &rule{id: text.ID, entropy: text.Entropy, group: text.SecretGroup, whole: slices.Contains(wholeMatch, text.ID)}
	for _, list := range text.Allowlists {
		if list.Condition != "AND" || len(list.Paths) == 0 { // there are no paths here
			r.allow = append(r.allow, newAllowed(list))
		}
	}
	regex := text.Regex
	for _, begin := range []string{`(?i:`, `(?i)`} {
		if rest, ok := strings.CutPrefix(strings.TrimPrefix(regex, anyBefore), begin+anyBefore); ok {
			r.anchored, regex = true, begin+rest
		}
	}
	if r.anchored = r.anchored || slices.Contains(atKeyword, text.ID); r.anchored {
		regex = `\A(?s:.)(?:` + regex + `)`
	}
	r.regex = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(regex) })
	return r
}

// allowed is a list of what is no secret though a rule matches.
type allowed struct {
	target string // what the expression is about: the secret (""), the "match" or the "line"
	regex  func() *regexp.Regexp
	words  *words
}

func newAllowed(text allowText) *allowed {
	a := &allowed{target: text.RegexTarget}
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
	if !a.words.find(secret, func(int, int) bool { return false }) {
		return true
	}
	if a.regex == nil {
		return false
	}
	switch a.target {
	case "match":
		secret = text[m.from:m.to]
	case "line":
		secret = lineAround(text, m.from, m.to)
	}
	return a.regex().Match(secret)
}
