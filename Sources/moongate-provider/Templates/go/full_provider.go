// new_provider: verifies a secret phrase that the account has chosen. The gateway counts the attempts, keeps
// the record sealed, and lends the hashing.
package main

import (
	"context"
	"embed"
	"strconv"
	"strings"
	"unicode/utf8"

	"new_provider/moongate"
)

//go:embed policy.lua cases.lua flows words
var files embed.FS

var phraseField = moongate.Field{Name: "phrase", Kind: "password"}

var provider = moongate.Provider{
	Files:        files,
	SubmitFields: []moongate.Field{phraseField},
	Hashes:       true,
	Role:         []string{"factor"},
	Outcomes: []moongate.Outcome{
		{Reason: "wrong_phrase", Sentence: "This is not your phrase. Try again."},
		// The others say nothing about a secret, so the attempt is given back.
		{Reason: "no_match", Sentence: "The two phrases differ. Choose one again.", Uncounted: true},
		{Reason: "no_phrase", Sentence: "You have not chosen a phrase yet.", Uncounted: true},
		{Reason: "already_set", Sentence: "You have chosen a phrase already.", Uncounted: true},
	},
	Facts: []moongate.Fact{{Name: "words", Kind: "number", Help: "How many words the phrase has."}},
	Words: &moongate.Words{
		Title: "New provider", Instruction: "Type your secret phrase.", Labels: map[string]string{"phrase": "Phrase"},
		Links: map[string]string{"set": "Choose a secret phrase"},
	},
	Begin:  begin,
	Submit: submit,
}

func begin(ctx context.Context, step moongate.Step) (moongate.Answer, error) {
	if reason := obstacle(step); reason != "" {
		return moongate.Refused(reason), nil
	}
	return moongate.Ask(phraseField), nil
}

func submit(ctx context.Context, step moongate.Step) (moongate.Answer, error) {
	phrase := step.Text("phrase")
	if utf8.RuneCountInString(phrase) < 12 {
		return moongate.Malformed("phrase", "A phrase has at least 12 characters."), nil
	}
	if reason := obstacle(step); reason != "" {
		return moongate.Refused(reason), nil
	}
	if step.Purpose == "set" {
		return choose(ctx, step, phrase)
	}
	// Without an account the same work is done, so that the time does not tell who is registered.
	verdict, err := step.Tools.Verify(ctx, phrase, step.Record())
	switch {
	case err != nil:
		return moongate.Answer{}, err
	case !verdict.IsRight:
		return moongate.Refused("wrong_phrase"), nil
	case step.Purpose == "disable":
		return moongate.Proved(moongate.Proof{Record: moongate.Remove()}), nil
	}
	facts := map[string]string{"words": strconv.Itoa(len(strings.Fields(phrase)))}
	return moongate.Proved(moongate.Proof{Record: moongate.Renew(verdict.Renewed), Facts: facts}), nil
}

// choose takes two rounds: the first keeps a hash of the phrase in the state, which the gateway seals; the
// second compares with it.
func choose(ctx context.Context, step moongate.Step, phrase string) (moongate.Answer, error) {
	if step.State == "" {
		hash, err := step.Tools.Hash(ctx, phrase)
		return moongate.Ask(phraseField).Keeping(hash).Showing(moongate.ShowText("Type the phrase once more.")), err
	}
	var hash string
	if err := step.Kept(&hash); err != nil {
		return moongate.Answer{}, err
	}
	verdict, err := step.Tools.Verify(ctx, phrase, &hash)
	if err != nil || !verdict.IsRight {
		return moongate.Refused("no_match").Then(moongate.Ask(phraseField)), err
	}
	return moongate.Proved(moongate.Proof{Record: moongate.Replace(hash)}), nil
}

// obstacle returns why the step cannot be passed with any input; empty if it can.
func obstacle(step moongate.Step) string {
	hasPhrase := step.Record() != nil
	switch {
	case step.Purpose != "set" && step.Account != nil && !hasPhrase:
		return "no_phrase"
	// Attack: a session that was left open chooses another phrase. In a reset something else was proved first.
	case step.Purpose == "set" && hasPhrase && step.FlowPurpose != "reset":
		return "already_set"
	}
	return ""
}

func main() { moongate.Run(provider) }
