package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"new_provider/moongate"
)

var message = moongate.Message{To: moongate.Identifier{Kind: "email", Value: "asha@example.com"}, Text: "123456 is your code", Code: "123456"}

func deliver(t *testing.T, file string) error {
	provider := provider()
	if err := provider.Configure(moongate.Settings{"file": file}); err != nil {
		t.Fatal(err)
	}
	return provider.Deliver(context.Background(), message)
}

func TestWritesTheMessageOfThePolicy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "codes.txt")
	if err := deliver(t, file); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "asha@example.com 123456 is your code\n" {
		t.Fatal(string(text), err)
	}
}

func TestAFailureIsAnErrorWithoutTheCode(t *testing.T) {
	if err := deliver(t, "/nowhere/codes.txt"); err == nil || strings.Contains(err.Error(), "123456") {
		t.Fatal(err)
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
