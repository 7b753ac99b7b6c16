// Answers every way that a provider can, by what it is sent. The same program stands in probe.py and probe.mjs.
package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"probe/moongate"
)

//go:embed policy.lua cases.lua flows words
var files embed.FS

var what = moongate.Field{Name: "what", Kind: "text"}

var values moongate.Settings

var least, most = 1.0, 9.0

func configure(settings moongate.Settings) error {
	if settings.Text("token") == "bad" {
		return errors.New("`token` is not one of the hub's")
	}
	values = settings
	return nil
}

func begin(ctx context.Context, step moongate.Step) (moongate.Answer, error) {
	if step.Flow == "mistake" {
		return moongate.Proved(moongate.Proof{}), nil
	}
	return moongate.Ask(what), nil
}

func submit(ctx context.Context, step moongate.Step) (moongate.Answer, error) {
	done := moongate.Proved(moongate.Proof{})
	switch strings.Split(step.Text("what"), ",")[0] {
	case "everything":
		return moongate.Proved(moongate.Proof{
			Identifiers: []moongate.Identifier{{Kind: "email", Value: step.Identifier.Value, Attributes: map[string]string{"floor": "3"}}},
			Claimed:     []moongate.Identifier{{Kind: "email", Value: "b@example.com"}},
			FirstName:   "Asha", LastName: "Rao",
			Record: moongate.Replace(fmt.Sprintf("%s and %v", *step.Record(), values.Number("count"))),
		}), nil
	case "rounds":
		var kept struct {
			Round int `json:"round"`
		}
		if step.State == "" {
			kept.Round = 1
			return moongate.Ask(what).Keeping(kept).Showing(
				moongate.ShowText("t"), moongate.ShowSecret("s"), moongate.ShowQR("q"), moongate.ShowList("a", "b")), nil
		}
		if err := step.Kept(&kept); err != nil {
			return moongate.Answer{}, err
		}
		kept.Round++
		return moongate.Refused("again").Then(moongate.Ask(what).Keeping(kept)), nil
	case "tools":
		heard, err := useTools(ctx, step.Tools)
		return moongate.Proved(moongate.Proof{Record: moongate.Replace(heard)}), err
	case "hang":
		<-ctx.Done()
		moongate.Log("warning", "given up", map[string]any{"call": step.Now})
	case "print":
		fmt.Println("not a message")
	case "crash":
		panic("cannot use ninety-nine quiet pigeons")
	case "wrong":
		return moongate.Refused("wrong"), nil
	case "undeclared":
		return moongate.Refused("nobody_knows"), nil
	case "nothing":
		return moongate.Answer{}, nil
	case "remove":
		return moongate.Proved(moongate.Proof{Record: moongate.Remove()}), nil
	case "renew":
		return moongate.Proved(moongate.Proof{Record: moongate.Renew("newer")}), nil
	case "malformed":
		return moongate.Malformed("what", "Say something."), nil
	case "redirect":
		return moongate.Redirect("https://example.com/").Keeping([]int{1}), nil
	case "weak":
		return moongate.Malformed("what", "Say more.").As("weak_pin"), nil
	case "both":
		return moongate.Proved(moongate.Proof{MultiFactor: true}), nil
	case "choose":
		return moongate.Ask(moongate.Field{Name: "which", Kind: "choice", Choices: []moongate.Choice{{Value: "a", Label: "The first"}, {Value: "b", Label: "The second"}}}), nil
	case "ceremony":
		return moongate.Ask(moongate.Field{Name: "answer", Kind: "json"}).Showing(moongate.ShowCeremony("get", `{"challenge":"AA"}`)), nil
	case "wait":
		return moongate.Wait(2500 * time.Millisecond).Keeping(map[string]int{"handle": 1}).Showing(moongate.ShowText("Look at your phone.")), nil
	case "long":
		return moongate.Ask(what).Keeping(strings.Repeat("x", 140_000)), nil
	case "equal":
		if !moongate.Equal("é", "é") || moongate.Equal("a", "ab") {
			return moongate.Refused("wrong"), nil
		}
	}
	return done, nil
}

// useTools asks for everything that the gateway grants.
func useTools(ctx context.Context, tools *moongate.Tools) (string, error) {
	hash, err := tools.Hash(ctx, "a word")
	if err != nil {
		return "", err
	}
	verdict, err := tools.Verify(ctx, "a word", &hash)
	if err != nil {
		return "", err
	}
	if err := tools.Store.Set(ctx, "key", "value", time.Minute); err != nil {
		return "", err
	}
	stored, err := tools.Store.SetOnce(ctx, "key", "other", 1500*time.Millisecond)
	if err != nil {
		return "", err
	}
	heard := []any{hash, verdict.IsRight, verdict.Renewed, stored}
	store := tools.Store
	for _, read := range []func(context.Context, string) (*string, error){store.Get, store.Take, store.Take} {
		value, err := read(ctx, "key")
		if err != nil {
			return "", err
		}
		heard = append(heard, value)
	}
	if err := tools.Store.Remove(ctx, "key"); err != nil {
		return "", err
	}
	text, err := json.Marshal(heard)
	return string(text), err
}

func deliver(ctx context.Context, message moongate.Message) error {
	if message.To.Value == "+919999999990" {
		return errors.New("the hub is down")
	}
	if strings.HasPrefix(message.To.Value, "+91888") {
		if strings.HasSuffix(message.To.Value, "8") {
			return moongate.Undelivered("not_there")
		}
		return moongate.Undelivered("nobody_knows")
	}
	moongate.Log("info", "sent", map[string]any{"length": len(message.Text + message.DomainBoundLine)})
	return nil
}

func hook(ctx context.Context, webhook moongate.Webhook) (moongate.HookAnswer, error) {
	if webhook.Headers["signature"] != "right" {
		return moongate.Rejected("unauthenticated"), nil
	}
	var text []rune
	for _, one := range webhook.Body {
		text = append(text, rune(one))
	}
	return moongate.Accepted("thanks"), webhook.Tools.Store.Set(ctx, "approved", string(text), time.Minute)
}

func maintain(ctx context.Context, tools *moongate.Tools, now int64) error {
	return tools.Store.Remove(ctx, fmt.Sprintf("old %d", now))
}

func upgrade(ctx context.Context, record string, version int) (string, error) {
	return fmt.Sprintf("%s of %d", record, version), nil
}

func recheck(ctx context.Context, known moongate.Known) (moongate.RecheckAnswer, error) {
	fresh := fmt.Sprintf("new %d", known.Now)
	switch known.State {
	case "gone":
		return moongate.Ended("invalid_grant"), nil
	case "down":
		return moongate.Unanswered("no answer").Keeping(fresh), nil
	}
	groups := moongate.Identifier{Kind: known.Identity.Kind, Value: known.Identity.Value, Groups: []string{"ops"}}
	return moongate.Confirmed(groups).Keeping(fresh), nil
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "codes" {
		moongate.Run(moongate.Provider{
			Files: files, Identifier: "phone", Words: &moongate.Words{Title: "Probe"}, CallbackFields: []moongate.Field{},
			DeliveryReasons:     []moongate.DeliveryReason{{Reason: "not_there", Sentence: "This number is not there.", Permanent: true}},
			MaintenanceInterval: time.Minute, Deliver: deliver, Hook: hook, Maintain: maintain,
		})
		return
	}
	probe := moongate.Provider{
		Files:        files,
		Identifier:   "email",
		SubmitFields: []moongate.Field{what},
		Settings: []moongate.Setting{
			{Name: "token", Kind: "secret", Required: true, Help: "A secret."},
			{Name: "count", Kind: "number", Default: 3, Minimum: &least, Maximum: &most},
		},
		Outcomes: []moongate.Outcome{
			{Reason: "wrong", Sentence: "This is wrong."}, {Reason: "again", Sentence: "Once more.", Uncounted: true},
		},
		Facts: []moongate.Fact{{Name: "floor", Kind: "number", Of: "email", Help: "Where they work."}},
		Words: &moongate.Words{
			Title: "Probe", Instruction: "What to do", Labels: map[string]string{"what": "What"}, Links: map[string]string{"set": "Set it"},
			Name: "Probe code",
		},
		Role:          []string{"factor"},
		Configure:     configure,
		RecordVersion: 2,
		Upgrade:       upgrade,
		Begin:         begin,
		Submit:        submit,
	}
	if len(os.Args) > 1 && os.Args[1] == "no-upgrade" {
		probe.Upgrade = nil
	}
	if len(os.Args) > 1 && os.Args[1] == "rechecks" {
		probe.Recheck = recheck
	}
	if len(os.Args) > 1 && os.Args[1] == "no-interval" {
		probe.Maintain = maintain
	}
	moongate.Run(probe)
}
