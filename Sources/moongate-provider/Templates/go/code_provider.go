// new_provider: verifies an email address by a code. The gateway reads the address, and makes, counts,
// compares and expires the codes.
package main

import (
	"context"
	"embed"
	"fmt"
	"os"

	"new_provider/moongate"
)

//go:embed policy.lua words
var files embed.FS

// A mailbox is where codes go. While you try it out, it is a file.
type mailbox struct{ file string }

func (mailbox *mailbox) configure(settings moongate.Settings) error {
	mailbox.file = settings.Text("file")
	return nil
}

// deliver is where your own way to the person comes. If it fails, return an error: the operator is told, and
// the person is not charged.
func (mailbox *mailbox) deliver(ctx context.Context, message moongate.Message) error {
	file, err := os.OpenFile(mailbox.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = fmt.Fprintln(file, message.To.Value, message.Text)
	return err
}

func provider() moongate.Provider {
	mailbox := &mailbox{}
	return moongate.Provider{
		Files:      files,
		Identifier: "email",
		Settings: []moongate.Setting{
			{Name: "file", Kind: "text", Default: "codes.txt", Help: "The file that codes are written to while you try it out."},
		},
		Words: &moongate.Words{
			Title: "New provider", Instruction: "We send you a code.", Labels: map[string]string{"email": "Email address", "code": "Code"},
		},
		Configure: mailbox.configure,
		Deliver:   mailbox.deliver,
	}
}

func main() { moongate.Run(provider()) }
