package message

// byRequest are the providers that bill requests, and not tokens.
var byRequest = map[string]bool{}

// BillRequests notes that providers of those names bill requests. Only an init calls it.
func BillRequests(providers []string) {
	for _, name := range providers {
		byRequest[name] = true
	}
}

// BillsRequests reports whether a provider bills requests, so that tokens have no price.
func BillsRequests(provider string) bool { return byRequest[provider] }
