// Package sent makes context.json as omp 18 sends it (-o context=sent; docs/format.md, Context of omp 18): the messages
// that its buildSessionContext chooses on a branch, as its convertToLlm writes them for a model of any provider, and the
// settings of the branch.
//
// Unlike sessioncore.Snapshot.Context it reads every entry of the branch, one at a time, as tool calls without a result
// and turns that failed are left out. Like that it makes a document that consists of ranges of the session file where
// a message is sent as it is; what is composed is held, up to a bound.
//
// It never writes, and knows no provider.
package sent
