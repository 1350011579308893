package message

import "slices"

// byRequest are the providers that bill requests instead of tokens.
var byRequest []string

// BillsRequests reports whether a provider bills requests, so that tokens have no price.
func BillsRequests(provider string) bool { return slices.Contains(byRequest, provider) }
