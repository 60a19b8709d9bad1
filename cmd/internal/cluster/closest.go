package cluster

import (
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

// similar is how much of two names has to be the same.
const similar = 0.75

// DidYouMean returns a question for the candidate whose first word is most like a name that does not exist; "" if none
// is.
func DidYouMean(name string, candidates []string) string {
	closest, most := "", similar
	for _, candidate := range candidates {
		word, _, _ := strings.Cut(candidate, " ")
		ratio := difflib.NewMatcher(strings.Split(name, ""), strings.Split(word, "")).Ratio()
		if ratio > most {
			closest, most = candidate, ratio
		}
	}
	if closest == "" {
		return ""
	}
	return "; did you mean " + closest + "?"
}
