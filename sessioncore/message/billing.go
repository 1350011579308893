package message

// byRequest are the providers that bill requests instead of tokens.
var byRequest = map[string]bool{}

// BillRequests records providers that bill requests. Call it only from an init.
func BillRequests(providers []string) {
	for _, name := range providers {
		byRequest[name] = true
	}
}

// BillsRequests reports whether a provider bills requests, so that tokens have no price.
func BillsRequests(provider string) bool { return byRequest[provider] }
