package report

import (
	_ "embed" // for the list prices
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"sessionfs/sessioncore/message"
	"sessionfs/sessioncore/storage"
)

// Prices are the prices of models, for usages without a recorded cost. The zero value knows
// no model.
type Prices struct {
	file priceTable // of the user, before the list
	name string     // of its file
	list bool       // models that the file lacks have list prices
}

// listText is the list of prices that comes along, with models of Anthropic, OpenAI and Google.
//
//go:embed prices.json
var listText string

// priceList returns the list of prices and its month. It is parsed only when a usage needs it.
var priceList = sync.OnceValues(func() (priceTable, string) {
	var about struct {
		About struct{ Date string } `json:"_"`
	}
	err := json.Unmarshal([]byte(listText), &about)
	if err != nil {
		panic(err) // TestPriceList
	}
	table, err := readPrices([]byte(listText))
	if err != nil {
		panic(err)
	}
	return table, about.About.Date
})

// maxPrices bounds the size of a file of prices, in bytes. LiteLLM's has 2 MB for 3,000
// models.
const maxPrices = 64 << 20

// ListPrices are the prices of the list alone.
var ListPrices = Prices{list: true}

// OpenPrices returns the list prices with the models of a file in their place. The file has the format of
// LiteLLM's. An error of reading it names the file.
func OpenPrices(name string) (p Prices, err error) {
	text, err := storage.ReadNamed(name, maxPrices)
	if err != nil {
		return p, err
	}
	table, err := readPrices(text)
	if err != nil {
		return p, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return Prices{file: table, name: filepath.Base(name), list: true}, nil
}

// Source names the prices for a person: the month of the list, and the file; "" without any.
func (p Prices) Source() string {
	if !p.list {
		return ""
	}
	_, month := priceList()
	if p.name != "" {
		return month + " and of " + p.name
	}
	return month
}

// find returns the price of a model, which is named provider/model. Models of a provider that bills
// requests have only prices of the file.
func (p Prices) find(model string) (price, bool) {
	provider, _, _ := strings.Cut(model, "/")
	if message.BillsRequests(provider) {
		of, ok := p.file[dashed(model)]
		return of, ok
	}
	of, ok := p.file.find(model)
	if ok || !p.list {
		return of, ok
	}
	list, _ := priceList()
	return list.find(model)
}

// priceTable has the prices of models, by their dashed names.
type priceTable map[string]price

// betweenDigits is a dot that is written as a dash elsewhere.
var betweenDigits = regexp.MustCompile(`([0-9])\.([0-9])`)

// dashed returns a name with a dash in the place of each dot between digits.
func dashed(name string) string {
	if !strings.Contains(name, ".") { // as most names
		return name
	}
	return betweenDigits.ReplaceAllString(name, "$1-$2")
}

// optional are parts of a model's name that other programs leave out: a region or provider before
// it in Bedrock; its version in Bedrock or Vertex, or the length of the context in brackets; and
// the day of the model's version.
var optional = [...]*regexp.Regexp{
	regexp.MustCompile(`^([a-z-]+\.)+`),
	regexp.MustCompile(`(@[^/]*|-v[0-9]+(:[0-9]+)?|\[[^\]]*\])$`),
	regexp.MustCompile(`-20[0-9]{2}(-?)[0-9]{2}(-?)[0-9]{2}$`),
}

// find returns the price of a model: by its exact name, then without providers before it, then
// without its optional parts.
func (t priceTable) find(model string) (of price, ok bool) {
	for len(t) > 0 { // each round makes the name shorter
		of, ok = t[dashed(model)]
		if ok {
			break
		}
		_, rest, isLonger := strings.Cut(model, "/")
		if isLonger {
			model = rest
			continue
		}
		i := slices.IndexFunc(optional[:], func(part *regexp.Regexp) bool {
			return part.MatchString(model)
		})
		if i < 0 {
			break
		}
		model = optional[i].ReplaceAllString(model, "")
	}
	return of, ok
}

// price is the price of a token, in dollars.
type price struct {
	rates
	long []longRates // for answers with a long context, the longest first
	fast amount      // the price of an answer in fast mode is so many times the usual one; 0 if nobody knows
}

// rates are prices of a token. The price hour is for tokens that the cache keeps for an hour.
type rates struct{ input, output, cacheRead, cacheWrite, hour amount }

// longRates are the rates of a whole answer with more tokens than above in its input.
type longRates struct {
	above amount
	rates
}

// of returns the rates of an answer with a sum, by the size of its input.
func (p *price) of(s *Sum) rates {
	input := s.Input + s.CacheRead + s.CacheWrite
	for _, long := range p.long {
		if input > long.above {
			return long.rates
		}
	}
	return p.rates
}

// rateKeys are the keys of rates in LiteLLM's format.
var rateKeys = [...]string{
	"input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost", "cache_creation_input_token_cost",
	"cache_creation_input_token_cost_above_1hr",
}

// longKey is the end of the key of a rate for contexts of more than so many thousand tokens.
var longKey = regexp.MustCompile(`_above_([0-9]{1,9})k_tokens$`)

// readPrices reads prices in the format of LiteLLM's model_prices_and_context_window.json: an
// object of the models, each with dollars per token. A model without a price of its input or of its
// output is left out.
func readPrices(text []byte) (priceTable, error) {
	var models map[string]json.RawMessage
	err := json.Unmarshal(text, &models)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return nil, fmt.Errorf("it is not a JSON object with a member for each model: JSON ends at byte %d", syntax.Offset)
	}
	if err != nil {
		return nil, errors.New("it is not a JSON object with a member for each model")
	}
	t := priceTable{}
	for _, name := range slices.Sorted(maps.Keys(models)) { // of those that differ in a dot alone the last counts
		var members map[string]json.RawMessage
		err := json.Unmarshal(models[name], &members)
		if err == nil {
			err = t.add(name, members)
		}
		if err != nil {
			return nil, fmt.Errorf("model %q: %w", name, err)
		}
	}
	if len(t) == 0 {
		return nil, errors.New("no model in it has input_cost_per_token and output_cost_per_token")
	}
	return t, nil
}

// add adds the model of a name with its members, if it has prices of its input and its output. The error is a
// price that is no number, or below 0.
func (t priceTable) add(name string, members map[string]json.RawMessage) error {
	own, err := readRates(members, "")
	if err != nil || own[0] == nil || own[1] == nil {
		return err
	}
	p := price{rates: own.rates(rates{})}
	suffixes := longSuffixes(members)
	shortestFirst := slices.Sorted(maps.Keys(suffixes))
	for _, thousands := range slices.Backward(shortestFirst) {
		long, err := readRates(members, suffixes[thousands])
		if err != nil {
			return err
		}
		above := amount(thousands) * 1000
		p.long = append(p.long, longRates{above, long.rates(p.rates)})
	}
	var byProvider struct{ Fast any }
	err = json.Unmarshal(members["provider_specific_entry"], &byProvider)
	if err == nil {
		fast, _ := byProvider.Fast.(float64)
		p.fast = amount(max(0, fast))
	}
	t[dashed(name)] = p
	return nil
}

// longSuffixes returns the suffixes of the keys for long contexts, by their thousands of tokens.
func longSuffixes(members map[string]json.RawMessage) map[uint64]string {
	suffixes := map[uint64]string{}
	for key := range members {
		found := longKey.FindStringSubmatch(key)
		if found != nil {
			thousands, _ := strconv.ParseUint(found[1], 10, 64)
			suffixes[thousands] = found[0]
		}
	}
	return suffixes
}

// ownRates are the rates that a model has keys for, in the order of rateKeys; nil is one that it
// has none for.
type ownRates [len(rateKeys)]*amount

// readRates reads the rates with keys that end in a suffix.
func readRates(members map[string]json.RawMessage, suffix string) (own ownRates, err error) {
	for i, key := range rateKeys {
		text, ok := members[key+suffix]
		if !ok {
			continue
		}
		err := json.Unmarshal(text, &own[i])
		if err != nil {
			return own, fmt.Errorf("%s: %w", key+suffix, err)
		}
		if own[i] != nil && *own[i] < 0 {
			return own, fmt.Errorf("%s is a price below 0", key+suffix)
		}
	}
	return own, nil
}

// hourFactor is the price of a cache write for an hour, as a multiple of the input's: the same for all
// models of Anthropic, the only provider that sells it.
const hourFactor = 2

// rates returns own with the rates that it lacks. The rates of a long context are short's, as much
// dearer as the input is. Without any, cached input costs as much as other input.
func (own ownRates) rates(short rates) (r rates) {
	or := func(i int, other amount) amount {
		if own[i] != nil {
			return *own[i]
		}
		return other
	}
	dearer := amount(1)
	r.input = or(0, short.input)
	r.output = or(1, short.output)
	isShort := short == rates{}
	if isShort {
		short = rates{cacheRead: r.input, cacheWrite: r.input, hour: hourFactor * r.input}
	} else if short.input > 0 {
		dearer = r.input / short.input
	}
	r.cacheRead = or(2, short.cacheRead*dearer)
	r.cacheWrite = or(3, short.cacheWrite*dearer)
	r.hour = or(4, short.hour*dearer)
	return r
}
