// Package agents is the registry of coding agents with session formats of their own, and the kit
// that shows their sessions as session files (docs/format.md). An agent's package registers one
// Agent in its init; package all imports all of them. Everything above uses the registry and names
// no agent.
//
// An agent's Converter makes the lines; Files decides when, and keeps them: a session is converted
// when it is read, and extended when its file has grown. Nothing is written. [Builder], which
// has an example, does for an agent all but the reading of its records.
package agents
