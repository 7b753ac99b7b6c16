package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"new_provider/moongate"
)

const right, wrong = "ninety-nine quiet pigeons", "ninety-nine quiet penguins"

// typed is a step in which a user with an account types a phrase.
func typed(phrase, purpose string, record *string) moongate.Step {
	return moongate.Step{
		Purpose: purpose, Account: &moongate.Account{ID: "a1", Record: record}, Fields: map[string]any{"phrase": phrase}, Tools: moongate.OfflineTools(),
	}
}

// answer is what the provider answers, as the gateway reads it.
func answer(t *testing.T, step moongate.Step) string {
	t.Helper()
	said, err := submit(context.Background(), step)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// chosen is the record of an account that has chosen the phrase.
func chosen(t *testing.T) *string {
	t.Helper()
	step := typed(right, "set", nil)
	step.State = stateOf(t, answer(t, step))
	var said struct {
		Proved struct{ Record struct{ Replace string } }
	}
	if err := json.Unmarshal([]byte(answer(t, step)), &said); err != nil || said.Proved.Record.Replace == "" {
		t.Fatal(err, said)
	}
	return &said.Proved.Record.Replace
}

func stateOf(t *testing.T, answer string) string {
	t.Helper()
	var said struct{ Ask struct{ State string } }
	if err := json.Unmarshal([]byte(answer), &said); err != nil || said.Ask.State == "" {
		t.Fatal(err, answer)
	}
	return said.Ask.State
}

func TestAnswers(t *testing.T) {
	record := chosen(t)
	reset := typed(right, "set", record)
	reset.FlowPurpose = "reset"
	differs := typed(wrong, "set", nil)
	differs.State = stateOf(t, answer(t, typed(right, "set", nil)))
	for name, one := range map[string]struct {
		step   moongate.Step
		begins string
	}{
		"the right phrase is proved":         {typed(right, "prove", record), `{"proved":{"facts":{"words":"3"}}}`},
		"a wrong phrase is refused":          {typed(wrong, "prove", record), `{"refused":"wrong_phrase"}`},
		"two phrases that differ":            {differs, `{"refused":"no_match","then":{"fields":[{"name":"phrase"`},
		"what is set is not set again":       {typed(right, "set", record), `{"refused":"already_set"}`},
		"it is, after something else":        {reset, `{"ask":`},
		"disabling removes the record":       {typed(right, "disable", record), `{"proved":{"record":{}}}`},
		"a short phrase is malformed":        {typed("short", "prove", record), `{"malformed":{"detail":"A phrase has at least`},
		"nothing is proved without a phrase": {typed(right, "prove", nil), `{"refused":"no_phrase"}`},
	} {
		if told := answer(t, one.step); !strings.HasPrefix(told, one.begins) {
			t.Errorf("%s: %s", name, told)
		}
	}
}

func TestTwoAccountsWithOnePhraseHaveTwoRecords(t *testing.T) {
	if first, second := *chosen(t), *chosen(t); first == second || strings.Contains(first, "pigeons") {
		t.Fatal(first, second)
	}
}

// Attack: the time of the answer tells who is registered.
func TestNobodyTakesTheSameWork(t *testing.T) {
	known, unknown := typed(wrong, "prove", chosen(t)), typed(wrong, "prove", nil)
	unknown.Account = nil
	if answer(t, known) != answer(t, unknown) || !reflect.DeepEqual(known.Tools.Calls, unknown.Tools.Calls) {
		t.Fatal(known.Tools.Calls, unknown.Tools.Calls)
	}
}

// The conformance suite needs the `moongate` program, named by MOONGATE or in PATH, and this program built.
func TestHoldsTheConformanceSuite(t *testing.T) {
	moongate := os.Getenv("MOONGATE")
	if moongate == "" {
		moongate = "moongate"
	}
	if _, err := exec.LookPath(moongate); err != nil {
		t.Skip("needs the moongate program: put it into PATH, or name it by MOONGATE")
	}
	if told, err := exec.Command("go", "build", "-o", "new_provider", ".").CombinedOutput(); err != nil {
		t.Fatal(string(told))
	}
	if told, err := exec.Command(moongate, "provider", "test", "./new_provider").CombinedOutput(); err != nil {
		t.Fatal(string(told))
	}
}
