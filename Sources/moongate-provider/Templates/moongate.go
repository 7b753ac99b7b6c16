// Package moongate writes a provider for the Moongate gateway as a Go program. One file, Go 1.19, standard
// library only.
//
// Declare a provider and run it:
//
//	//go:embed policy.lua
//	var files embed.FS
//
//	var word = moongate.Field{Name: "word", Kind: "password"}
//
//	func main() {
//		moongate.Run(moongate.Provider{
//			Files:        files,
//			SubmitFields: []moongate.Field{word},
//			Outcomes:     []moongate.Outcome{{Reason: "wrong_word", Sentence: "This is not the word."}},
//			Words: &moongate.Words{
//				Title: "Word", Instruction: "Say the word.", Labels: map[string]string{"word": "Word"},
//			},
//			Begin: func(ctx context.Context, step moongate.Step) (moongate.Answer, error) {
//				return moongate.Ask(word), nil
//			},
//			Submit: func(ctx context.Context, step moongate.Step) (moongate.Answer, error) {
//				if moongate.Equal(step.Text("word"), "pigeon") {
//					return moongate.Proved(moongate.Proof{}), nil
//				}
//				return moongate.Refused("wrong_word"), nil
//			},
//		})
//	}
//
// A provider with Deliver sends codes that the gateway makes and compares. A provider with Begin and Submit
// verifies by itself. Calls run side by side, each in a goroutine: store short-lived data in the state
// and lasting data in the record, never in variables. policy.lua, flows/*.lua, cases.lua and words/*.words in Files
// belong to the provider. Standard output belongs to the protocol, so fmt.Println writes to standard error,
// which the gateway logs.
//
// An error is a fault: the user gets 503 and is not charged. Its text goes to the operator's log; never put
// a code or a secret into it.
//
// The protocol and every field: Documentation/plugins/programs.md of Moongate.
package moongate

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"runtime"
	"sort"
	"strings"
	"sync"
	"time"
	"unicode"
)

// longestLine is the maximum length of a message with its line end, in bytes. The gateway ends a program that
// writes more.
const longestLine = 131_072

// A Provider is a declaration and the functions of a provider: Deliver, or Begin and Submit.
type Provider struct {
	// Files holds policy.lua, and flows/*.lua, cases.lua and words/*.words if the provider has them; usually an
	// embed.FS.
	Files        fs.FS
	Settings     []Setting
	Words        *Words
	Identifier   string // "phone" or "email": the gateway reads the identifier of a step and passes it in To or Identifier.
	BeginFields  []Field
	SubmitFields []Field
	Outcomes     []Outcome
	// DeliveryReasons are the reasons that Deliver may give to Undelivered.
	DeliveryReasons []DeliveryReason
	// CallbackFields are the parameters that another site sends back with the user; nil: code, state, iss and error.
	CallbackFields []Field
	// RecordVersion is the version of the provider's records; Upgrade receives older records.
	RecordVersion int
	// MaintenanceInterval is the interval at which the gateway calls Maintain, on one gateway of the installation.
	MaintenanceInterval time.Duration
	Facts               []Fact
	Hashes              bool // Whether Submit hashes: a hashing permit is then taken before the attempt is charged.
	MultiFactor         bool // Whether a Proved may have MultiFactor.
	Federated           bool
	Presentation        map[string]any
	Entrance            map[string]any
	Page                string
	Role                []string

	// Configure receives the settings from gateway.lua, with defaults filled in. An error refuses the
	// configuration, and is shown to the operator.
	Configure func(settings Settings) error
	// Deliver sends a code. It returns an error if the message was not handed over, and Undelivered(reason) for a
	// declared reason.
	Deliver func(ctx context.Context, message Message) error
	// Begin opens a step. It answers Ask, Redirect, Refused or Malformed.
	Begin func(ctx context.Context, step Step) (Answer, error)
	// Submit judges the user's input. It answers Proved, Refused, Malformed, Ask, Wait or Redirect.
	Submit func(ctx context.Context, step Step) (Answer, error)
	// Hook takes a request of a vendor's server.
	Hook func(ctx context.Context, webhook Webhook) (HookAnswer, error)
	// Upgrade returns a record of an older version in the current form.
	Upgrade func(ctx context.Context, record string, version int) (string, error)
	// Maintain does periodic work.
	Maintain func(ctx context.Context, tools *Tools, now int64) error
	// Recheck asks the site about an identity again. Return Confirmed, Ended or Unanswered.
	Recheck func(ctx context.Context, known Known) (RecheckAnswer, error)
}

// A Field is a field that a step asks for. Kind is digits, text, phone, email, password, region, json or
// choice. json takes the answer of a ceremony; choice needs Choices, and only an Ask can have one.
type Field struct {
	Name     string   `json:"name"`
	Kind     string   `json:"kind"`
	Length   int      `json:"length,omitempty"`
	Choices  []Choice `json:"choices,omitempty"`
	Optional bool     `json:"-"`
}

// A Choice is an allowed value of a field of kind choice, and the text that the user reads.
type Choice struct {
	Value string `json:"value"`
	Label string `json:"label"`
}

// MarshalJSON writes `required`, the name in the protocol.
func (field Field) MarshalJSON() ([]byte, error) {
	type plain Field
	return json.Marshal(struct {
		plain
		Required bool `json:"required"`
	}{plain(field), !field.Optional})
}

// A Setting is one field of the provider's entry in gateway.lua. Kind is text, secret, number, flag, choice,
// list, table or file.
type Setting struct {
	Name     string   `json:"name"`
	Kind     string   `json:"kind"`
	Help     string   `json:"help,omitempty"`
	Required bool     `json:"required,omitempty"`
	Default  any      `json:"default,omitempty"`
	Minimum  *float64 `json:"minimum,omitempty"`
	Maximum  *float64 `json:"maximum,omitempty"`
	Choices  []string `json:"choices,omitempty"`
}

// An Outcome is a refusal that the provider may answer. With Uncounted the attempt is refunded: use it only for
// refusals that reveal nothing about a secret.
type Outcome struct {
	Reason    string
	Sentence  string
	Uncounted bool
}

// MarshalJSON writes `counts`, the name in the protocol.
func (outcome Outcome) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"reason": outcome.Reason, "sentence": outcome.Sentence, "counts": !outcome.Uncounted})
}

// A DeliveryReason is a reason why Deliver may fail. Permanent: another delivery to the same identifier would
// fail as well.
type DeliveryReason struct {
	Reason    string `json:"reason"`
	Sentence  string `json:"sentence"`
	Permanent bool   `json:"permanent,omitempty"`
}

// Undelivered is the error of Deliver for a declared reason: this identifier cannot be reached.
type Undelivered string

func (reason Undelivered) Error() string {
	return fmt.Sprintf("not delivered (%s), which DeliveryReasons does not declare", string(reason))
}

// A Fact is a fact that policies can read. Kind is text, number or flag.
type Fact struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	Of   string `json:"of,omitempty"`
	Help string `json:"help,omitempty"`
}

// Words are the texts of the pages: plain text. Translations come from words/LANGUAGE.words in Files.
type Words struct {
	Title       string            `json:"title"`
	Instruction string            `json:"instruction,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Links       map[string]string `json:"links,omitempty"`
	Name        string            `json:"name,omitempty"`
	Page        map[string]string `json:"page,omitempty"`
	Notices     map[string]Notice `json:"notices,omitempty"`
}

// A Notice is a message to the owner of an account about a change.
type Notice struct {
	Subject string `json:"subject"`
	Event   string `json:"event"`
}

// Settings are the settings from gateway.lua, by name, with defaults filled in.
type Settings map[string]any

// Text returns a text, a secret, a choice or the path of a file; empty if gateway.lua has no value.
func (settings Settings) Text(name string) string {
	text, _ := settings[name].(string)
	return text
}

// Number returns a number; 0 if gateway.lua has no value.
func (settings Settings) Number(name string) float64 {
	number, _ := settings[name].(float64)
	return number
}

// Flag returns a flag; false if gateway.lua has no value.
func (settings Settings) Flag(name string) bool {
	flag, _ := settings[name].(bool)
	return flag
}

// List returns a list of texts; empty if gateway.lua has no value.
func (settings Settings) List(name string) []string {
	items, _ := settings[name].([]any)
	texts := make([]string, 0, len(items))
	for _, item := range items {
		text, _ := item.(string)
		texts = append(texts, text)
	}
	return texts
}

// Table returns texts by name, those without a name by their place ("1", "2"); empty if gateway.lua has no value.
func (settings Settings) Table(name string) map[string]string {
	members, _ := settings[name].(map[string]any)
	texts := make(map[string]string, len(members))
	for member, value := range members {
		texts[member], _ = value.(string)
	}
	return texts
}

// An Identifier identifies a user: a phone number in E.164 form, an email address in lower case, or a federated
// identity "NAME subject".
type Identifier struct {
	Kind       string            `json:"kind"`
	Value      string            `json:"value"`
	Display    string            `json:"display,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
	// The groups of a federated identity that you prove. Each proof replaces its attributes and groups.
	Groups []string `json:"groups,omitempty"`
}

// An Account is the account of a step. Record is this provider's record for the account, or nil.
type Account struct {
	ID          string       `json:"id"`
	Record      *string      `json:"record"`
	Identifiers []Identifier `json:"identifiers"`
	Names       []string     `json:"names"`
}

// A Callback is the address to which another site sends the user back. Pass State to that site unchanged.
type Callback struct {
	Address string `json:"address"`
	State   string `json:"state"`
}

// A Step is one call of Begin or Submit. Purpose is prove, set, change or disable; Fields has the
// submitted values.
type Step struct {
	Flow        string         `json:"flow"`
	FlowPurpose string         `json:"flow_purpose"`
	Purpose     string         `json:"purpose"`
	Account     *Account       `json:"account"`
	Identifier  *Identifier    `json:"identifier"`
	State       string         `json:"state"` // What Keeping was given, as JSON; empty where nothing was kept.
	Callback    *Callback      `json:"callback"`
	Fields      map[string]any `json:"fields"`
	Now         int64          `json:"now"` // Milliseconds since the Unix epoch, by the gateway's clock.
	Tools       *Tools         `json:"-"`   // What the gateway grants for the call; in a test, OfflineTools().
}

// Text returns the submitted value of a field; empty if there is no value.
func (step Step) Text(name string) string {
	text, _ := step.Fields[name].(string)
	return text
}

// Record returns this provider's record for the account; nil without an account or a record.
func (step Step) Record() *string {
	if step.Account == nil {
		return nil
	}
	return step.Account.Record
}

// Kept decodes the value that Keeping stored.
func (step Step) Kept(into any) error { return json.Unmarshal([]byte(step.State), into) }

// A Message is a code to deliver. Send Text to To.Value; in an SMS, put DomainBoundLine last.
type Message struct {
	To              Identifier `json:"to"`
	Text            string     `json:"text"`
	Code            string     `json:"code"`
	DomainBoundLine string     `json:"domain_bound_line"`
	Service         string     `json:"service"`
	Now             int64      `json:"now"`
	Tools           *Tools     `json:"-"` // What the gateway grants for the call; in a test, OfflineTools().
}

// Tools are the services that the gateway grants while a call is open.
type Tools struct {
	Store   Store
	request request
	// Calls lists what was asked of OfflineTools.
	Calls []string
}

// request sends a request to the gateway.
type request func(ctx context.Context, method string, params map[string]any, result any) error

// A Verdict is the result of Verify. Renewed is a new hash at the current cost if the old one is outdated.
type Verdict struct {
	IsRight bool   `json:"match"`
	Renewed string `json:"upgrade"`
}

// Hash hashes a secret by Argon2id, with a salt and the gateway's pepper. In Submit only; declare Hashes.
func (tools *Tools) Hash(ctx context.Context, secret string) (string, error) {
	var result struct {
		Hash string `json:"hash"`
	}
	err := tools.request(ctx, "hash", map[string]any{"secret": secret}, &result)
	return result.Hash, err
}

// Verify compares a secret with its hash. With nil the gateway does the same work and nothing matches, so
// that an unknown account takes as long as a known one.
func (tools *Tools) Verify(ctx context.Context, secret string, hash *string) (Verdict, error) {
	var verdict Verdict
	err := tools.request(ctx, "verify", map[string]any{"secret": secret, "hash": hash}, &verdict)
	return verdict, err
}

// A Store is the provider's own key-value store: texts that expire and that all gateways share. Use it for
// nonces, approvals and answers of a vendor.
type Store struct{ request request }

type stored struct {
	Value  *string `json:"value"`
	Stored bool    `json:"stored"`
}

// Get returns the value, or nil if the key has none.
func (store Store) Get(ctx context.Context, key string) (*string, error) {
	var result stored
	err := store.request(ctx, "store.get", map[string]any{"key": key}, &result)
	return result.Value, err
}

// Set writes a value.
func (store Store) Set(ctx context.Context, key, value string, expiresIn time.Duration) error {
	var result stored
	return store.request(ctx, "store.set", map[string]any{"key": key, "value": value, "expires_in": expiresIn.Seconds()}, &result)
}

// SetOnce writes the value if the key has none. Only one of several concurrent calls gets true, so a nonce is
// new exactly once.
func (store Store) SetOnce(ctx context.Context, key, value string, expiresIn time.Duration) (bool, error) {
	var result stored
	err := store.request(ctx, "store.set", map[string]any{"key": key, "value": value, "expires_in": expiresIn.Seconds(), "once": true}, &result)
	return result.Stored, err
}

// Take reads and removes the value in one step. Only one of several concurrent calls gets the value.
func (store Store) Take(ctx context.Context, key string) (*string, error) {
	var result stored
	err := store.request(ctx, "store.take", map[string]any{"key": key}, &result)
	return result.Value, err
}

// Remove removes the value.
func (store Store) Remove(ctx context.Context, key string) error {
	var result stored
	return store.request(ctx, "store.remove", map[string]any{"key": key}, &result)
}

// OfflineTools are tools for tests: a store in memory that never expires, and cheap hashes. Calls lists the calls
// that the tools received.
func OfflineTools() *Tools {
	tools := &Tools{}
	values := map[string]string{}
	var lock sync.Mutex
	cheap := func(secret, salt string) string {
		return fmt.Sprintf("$%s$%x", salt, sha256.Sum256([]byte(salt+secret)))
	}
	tools.request = func(_ context.Context, method string, params map[string]any, result any) error {
		lock.Lock()
		defer lock.Unlock()
		tools.Calls = append(tools.Calls, method)
		said := map[string]any{}
		key, _ := params["key"].(string)
		secret, _ := params["secret"].(string)
		switch value, isThere := values[key]; method {
		case "hash":
			salt := make([]byte, 16)
			if _, err := rand.Read(salt); err != nil {
				return err
			}
			said["hash"] = cheap(secret, fmt.Sprintf("%x", salt))
		case "verify":
			hash, _ := params["hash"].(*string)
			said["match"] = hash != nil && Equal(*hash, cheap(secret, strings.Split(*hash+"$", "$")[1]))
		case "store.set":
			said["stored"] = params["once"] == nil || !isThere
			if said["stored"] == true {
				values[key], _ = params["value"].(string)
			}
		default:
			if isThere {
				said["value"] = value
			}
			if method != "store.get" {
				delete(values, key)
			}
		}
		return convert(said, result)
	}
	tools.Store = Store{tools.request}
	return tools
}

// convert copies a value into another by its JSON.
func convert(from, into any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// A Webhook is a request of a vendor's server to /auth/hook/NAME. Verify its signature over Body before
// anything else. Header names are in lower case.
type Webhook struct {
	Headers map[string]string
	Body    []byte
	Remote  string
	Now     int64
	Tools   *Tools
}

// A HookAnswer is the answer to a vendor. Create it with Accepted and Rejected.
type HookAnswer struct{ result map[string]any }

// Accepted accepts a webhook. Text is the answer to the vendor, such as the challenge of its handshake; it may be
// empty.
func Accepted(text string) HookAnswer {
	if text == "" {
		return HookAnswer{map[string]any{"accepted": map[string]any{}}}
	}
	return HookAnswer{map[string]any{"accepted": map[string]any{"text": text}}}
}

// Rejected rejects a webhook. Reason is unauthenticated (401), malformed (400) or too_large (413).
func Rejected(reason string) HookAnswer { return HookAnswer{map[string]any{"refused": reason}} }

// A Known is an identity that is rechecked. State is the last Recheck of a Proof, or the state of an answer: a secret.
type Known struct {
	Identity Identifier `json:"identity"`
	State    string     `json:"state"`
	Now      int64      `json:"now"`
	Tools    *Tools     `json:"-"`
}

// A RecheckAnswer is the answer of Recheck. Create it with Confirmed, Ended and Unanswered.
type RecheckAnswer struct{ result map[string]any }

// Confirmed answers with the same identity, with its groups and attributes of now.
func Confirmed(identity Identifier) RecheckAnswer {
	return RecheckAnswer{map[string]any{"confirmed": identity}}
}

// Ended answers that the user is gone or disabled, in a few words for the operator. The sessions end.
func Ended(because string) RecheckAnswer { return RecheckAnswer{map[string]any{"ended": because}} }

// Unanswered says that the site did not answer. Sessions go on until recheck_grace has passed. Return it with a new
// state if the site has replaced a token before.
func Unanswered(because string) RecheckAnswer {
	return RecheckAnswer{map[string]any{"failed": because}}
}

// Keeping replaces the state, whatever the answer is.
func (answer RecheckAnswer) Keeping(state string) RecheckAnswer {
	answer.result["state"] = state
	return answer
}

// An Answer is the answer of Begin and Submit. Create it with Ask, Redirect, Wait, Refused, Malformed and Proved.
type Answer struct {
	result map[string]any
	err    error
}

// MarshalJSON returns the message for the gateway, for tests.
func (answer Answer) MarshalJSON() ([]byte, error) {
	if answer.err != nil {
		return nil, answer.err
	}
	return json.Marshal(answer.result)
}

// Shown is content that the page shows beside the fields.
type Shown struct {
	Kind    string   `json:"kind"`
	Text    string   `json:"text,omitempty"`
	Items   []string `json:"items,omitempty"`
	Call    string   `json:"call,omitempty"`
	Options string   `json:"options,omitempty"`
}

// ShowText shows a line of text.
func ShowText(text string) Shown { return Shown{Kind: "text", Text: text} }

// ShowSecret shows a text that the user copies, such as a key.
func ShowSecret(text string) Shown { return Shown{Kind: "secret", Text: text} }

// ShowQR shows a text as a QR code.
func ShowQR(text string) Shown { return Shown{Kind: "qr", Text: text} }

// ShowList shows lines that the user keeps, such as recovery codes.
func ShowList(items ...string) Shown { return Shown{Kind: "list", Items: items} }

// ShowCeremony shows a call of the browser's credential API: create or get, with its options as JSON. Ask for
// one field of kind json beside it.
func ShowCeremony(call, options string) Shown {
	return Shown{Kind: "ceremony", Call: call, Options: options}
}

// Ask asks for these fields. After a submit it refunds the attempt, so it must not depend on whether a secret was
// right.
func Ask(fields ...Field) Answer {
	if fields == nil {
		fields = []Field{}
	}
	return Answer{result: map[string]any{"ask": map[string]any{"fields": fields}}}
}

// Redirect sends the user to another site, by https.
func Redirect(to string) Answer {
	return Answer{result: map[string]any{"redirect": map[string]any{"to": to}}}
}

// Wait means that the user decides elsewhere, such as in an app on their phone. The gateway calls Submit again
// without fields after 1 to 60 seconds.
func Wait(poll time.Duration) Answer {
	return Answer{result: map[string]any{"wait": map[string]any{"poll": poll.Milliseconds()}}}
}

// Refused refuses the answer for a declared reason.
func Refused(reason string) Answer { return Answer{result: map[string]any{"refused": reason}} }

// Malformed means that the input cannot be judged: the user gets 422, and no attempt is counted. Detail is a
// sentence for the user.
func Malformed(field, detail string) Answer {
	return Answer{result: map[string]any{"malformed": map[string]any{"field": field, "detail": detail}}}
}

// As gives a Malformed one of the gateway's reasons, such as weak_pin.
func (answer Answer) As(reason string) Answer {
	said, isMalformed := answer.result["malformed"].(map[string]any)
	if !isMalformed {
		answer.err = errors.New("As belongs to Malformed")
		return answer
	}
	said["reason"] = reason
	return answer
}

// Keeping stores any JSON value with an Ask, a Redirect or a Wait. The value is part of the next call.
func (answer Answer) Keeping(value any) Answer {
	text, err := json.Marshal(value)
	for _, kind := range []string{"ask", "redirect", "wait"} {
		if said, is := answer.result[kind].(map[string]any); is && err == nil {
			said["state"] = string(text)
			return answer
		}
	}
	answer.err = fmt.Errorf("Keeping belongs to Ask, Redirect and Wait, and to what JSON can say: %v", err)
	return answer
}

// Showing makes an Ask or a Wait show content beside the fields.
func (answer Answer) Showing(shown ...Shown) Answer {
	for _, kind := range []string{"ask", "wait"} {
		if said, is := answer.result[kind].(map[string]any); is {
			said["show"] = shown
			return answer
		}
	}
	answer.err = errors.New("Showing belongs to Ask and Wait")
	return answer
}

// Then makes a Refused ask for the fields of another round.
func (answer Answer) Then(next Answer) Answer {
	round, isAsk := next.result["ask"]
	if _, isRefused := answer.result["refused"]; !isRefused || !isAsk {
		answer.err = errors.New("Then belongs to Refused, and takes an Ask")
		return answer
	}
	answer.result["then"], answer.err = round, next.err
	return answer
}

// A Proof is the result of a passed step. All fields are optional.
type Proof struct {
	Identifiers []Identifier `json:"identifiers,omitempty"`
	Claimed     []Identifier `json:"claimed,omitempty"`
	FirstName   string       `json:"first_name,omitempty"`
	LastName    string       `json:"last_name,omitempty"`
	Record      *Record      `json:"record,omitempty"` // nil: it stays.
	// Facts are read by policies for the rest of the flow, as f.providers.NAME.FACT.
	Facts map[string]string `json:"facts,omitempty"`
	// MultiFactor says that two factors were proved at once, such as a device and the fingerprint that unlocks
	// it.
	MultiFactor bool `json:"multi_factor,omitempty"`
	// Recheck is what the method Recheck needs to ask about the identity again, such as a refresh token.
	Recheck *string `json:"recheck,omitempty"`
}

// A Record is a change of the account's record. Create it with Replace, Renew and Remove.
type Record struct {
	Replace *string `json:"replace,omitempty"`
	Once    bool    `json:"once,omitempty"`
}

// Replace stores this text. Only one of several flows that were judged by the same record completes.
func Replace(record string) *Record { return &Record{Replace: &record, Once: true} }

// Renew stores the same secret in a newer form, such as a hash at the current cost; nothing if the text is empty.
// The change is dropped if the record has changed meanwhile.
func Renew(record string) *Record {
	if record == "" {
		return nil
	}
	return &Record{Replace: &record}
}

// Remove removes the record.
func Remove() *Record { return &Record{} }

// Proved means that the user has proved the claim. Only Submit may answer it.
func Proved(proof Proof) Answer { return Answer{result: map[string]any{"proved": proof}} }

// Equal compares two texts in constant time.
func Equal(left, right string) bool {
	return subtle.ConstantTimeCompare([]byte(left), []byte(right)) == 1
}

// Log writes a line into the gateway's log. Level is info, notice, warning or error. Never log user
// input, codes or secrets.
func Log(level, message string, values map[string]any) {
	line := map[string]any{"method": "log", "params": map[string]any{"level": level, "message": message, "values": values}}
	if pipe == nil || pipe.write(line) != nil {
		fmt.Fprintln(os.Stderr, level, message, values)
	}
}

// hello is the declaration that the gateway receives at the start, for the provider's name in gateway.lua.
func (provider Provider) hello(name string) (map[string]any, error) {
	shape := "full"
	switch {
	case (provider.Deliver == nil) == (provider.Submit == nil):
		return nil, errors.New("define Deliver to send codes, or Begin and Submit to verify: one of the two")
	case provider.Submit != nil && provider.Begin == nil:
		return nil, errors.New("define Begin beside Submit: it opens the step, mostly by Ask")
	case provider.RecordVersion > 1 && provider.Upgrade == nil:
		return nil, errors.New("define Upgrade beside RecordVersion: it converts the records of older versions")
	case (provider.Maintain == nil) != (provider.MaintenanceInterval == 0):
		return nil, errors.New("define Maintain and MaintenanceInterval together: the interval says how often it is called")
	case provider.Deliver != nil:
		shape = "code"
	}
	texts, err := provider.texts(name)
	if err != nil {
		return nil, err
	}
	said := map[string]any{"protocol": 1, "library": "go", "shape": shape, "policy": texts.policy, "federated": provider.Federated}
	add := func(key string, isSaid bool, value any) {
		if isSaid {
			said[key] = value
		}
	}
	add("identifier", provider.Identifier != "", provider.Identifier)
	add("settings", provider.Settings != nil, provider.Settings)
	add("begin", provider.BeginFields != nil, provider.BeginFields)
	add("submit", provider.SubmitFields != nil, provider.SubmitFields)
	add("outcomes", provider.Outcomes != nil, provider.Outcomes)
	add("delivery_reasons", provider.DeliveryReasons != nil, provider.DeliveryReasons)
	add("callback", provider.CallbackFields != nil, provider.CallbackFields)
	add("hook", provider.Hook != nil, true)
	add("record_version", provider.RecordVersion != 0, provider.RecordVersion)
	add("maintain", provider.Maintain != nil, int64(provider.MaintenanceInterval.Seconds()))
	add("recheck", provider.Recheck != nil, true)
	add("facts", provider.Facts != nil, provider.Facts)
	add("hashes", provider.Hashes, true)
	add("multi_factor", provider.MultiFactor, true)
	add("presentation", provider.Presentation != nil, provider.Presentation)
	add("entrance", provider.Entrance != nil, provider.Entrance)
	add("page", provider.Page != "", provider.Page)
	add("role", provider.Role != nil, provider.Role)
	add("flows", len(texts.flows) > 0, texts.flows)
	add("cases", texts.cases != "", texts.cases)
	if provider.Words != nil {
		said["words"] = struct {
			Words
			Translations map[string]map[string]string `json:"translations,omitempty"`
		}{*provider.Words, texts.translations}
	}
	return said, nil
}

var policyName = regexp.MustCompile(`\bpolicy\s*"([a-z0-9_]+)"`)

// fileTexts are the texts of a provider's files.
type fileTexts struct {
	policy, cases string
	flows         map[string]string
	translations  map[string]map[string]string
}

// texts reads the provider's files. If gateway.lua calls the provider by another name than policy.lua, the name is
// replaced in the Lua texts.
func (provider Provider) texts(name string) (texts fileTexts, err error) {
	if provider.Files == nil {
		return texts, errors.New("Files is nil: embed policy.lua by `//go:embed policy.lua`")
	}
	text, err := fs.ReadFile(provider.Files, "policy.lua")
	if err != nil {
		return texts, fmt.Errorf("Files has no policy.lua, the provider's default policy: %w", err)
	}
	found := policyName.FindSubmatch(text)
	if found == nil {
		return texts, errors.New("policy.lua has no `return policy \"NAME\" { … }`")
	}
	own := string(found[1])
	quoted := regexp.MustCompile(`"` + own + `(_[a-z0-9_]+)?"`)
	renamed := func(text []byte) string { return quoted.ReplaceAllString(string(text), `"`+name+`${1}"`) }
	texts.policy, texts.flows, texts.translations = renamed(text), map[string]string{}, map[string]map[string]string{}
	flowFiles, _ := fs.Glob(provider.Files, "flows/*.lua")
	for _, file := range flowFiles {
		text, err := fs.ReadFile(provider.Files, file)
		if err != nil {
			return texts, err
		}
		if flow := strings.TrimSuffix(path.Base(file), ".lua"); strings.HasPrefix(flow+"_", own+"_") {
			texts.flows[name+strings.TrimPrefix(flow, own)] = renamed(text)
		}
	}
	if cases, err := fs.ReadFile(provider.Files, "cases.lua"); err == nil {
		texts.cases = renamed(cases)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return texts, err
	}
	wordFiles, _ := fs.Glob(provider.Files, "words/*.words")
	for _, file := range wordFiles {
		text, err := fs.ReadFile(provider.Files, file)
		if err != nil {
			return texts, err
		}
		words, err := readTranslations(file, string(text))
		if err != nil {
			return texts, err
		}
		texts.translations[strings.TrimSuffix(path.Base(file), ".words")] = words
	}
	return texts, nil
}

// readTranslations reads `English text = translation`, one per line; `#` begins a comment.
func readTranslations(file, text string) (map[string]string, error) {
	words := map[string]string{}
	for index, line := range strings.Split(text, "\n") {
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		english, other, isThere := strings.Cut(line, " = ")
		if !isThere || strings.TrimSpace(other) == "" {
			return nil, fmt.Errorf("%s:%d: write `English text = translation`", file, index+1)
		}
		words[strings.TrimSpace(english)] = strings.TrimSpace(other)
	}
	return words, nil
}

// check reports mistakes that the gateway would answer with 503, in sentences for the author.
func (provider Provider) check(answer Answer, method string) error {
	if answer.err != nil {
		return answer.err
	}
	if answer.result == nil {
		return fmt.Errorf("`%s` returned no answer; return Ask, Redirect, Refused, Malformed or Proved", method)
	}
	if _, isProof := answer.result["proved"]; isProof && method == "begin" {
		return errors.New("`begin` answered Proved; only Submit may, because the gateway counts attempts there")
	}
	reason, isRefusal := answer.result["refused"].(string)
	if !isRefusal {
		return nil
	}
	for _, outcome := range provider.Outcomes {
		if outcome.Reason == reason {
			return nil
		}
	}
	return fmt.Errorf("Refused(%q) is not declared; add {Reason: %q, Sentence: \"…\"} to Outcomes", reason, reason)
}

// An out writes messages, one per line, from any goroutine.
type out struct {
	lock sync.Mutex
	file *os.File
}

// pipe receives the messages; nil while no provider runs.
var pipe *out

// write returns an error if a message that is not an answer is too long.
func (pipe *out) write(message map[string]any) error {
	message["jsonrpc"] = "2.0"
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(message)
	if err == nil && line.Len() > longestLine {
		err = fmt.Errorf("the message has %d bytes; a line may have %d", line.Len(), longestLine)
	}
	if err != nil {
		if message["result"] == nil {
			return err
		}
		return pipe.write(map[string]any{"id": message["id"], "error": map[string]any{"code": 1, "message": err.Error()}})
	}
	pipe.lock.Lock()
	defer pipe.lock.Unlock()
	// Where the gateway is gone, standard input ends as well.
	_, _ = pipe.file.Write(line.Bytes())
	return nil
}

// incoming is a line from the gateway: a call, or the answer to a request, whose id is a text.
type incoming struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// A loop reads calls and answers each in a separate goroutine.
type loop struct {
	provider Provider
	lock     sync.Mutex
	open     map[int64]context.CancelFunc
	asked    map[string]chan incoming
	last     int
}

// Run exchanges messages with the gateway until `shutdown` or the end of standard input.
func Run(provider Provider) {
	pipe = &out{file: os.Stdout}
	// Output of other code must not be read as a message.
	os.Stdout = os.Stderr
	loop := &loop{provider: provider, open: map[int64]context.CancelFunc{}, asked: map[string]chan incoming{}}
	reader := bufio.NewReaderSize(os.Stdin, longestLine)
	for {
		line, err := reader.ReadBytes('\n')
		if err != nil {
			return
		}
		var message incoming
		if err := json.Unmarshal(line, &message); err != nil {
			fmt.Fprintln(os.Stderr, "the gateway wrote what is no message:", err)
			os.Exit(1)
		}
		switch {
		case message.Method == "shutdown":
			return
		case message.Method == "cancel":
			var cancelled struct {
				ID int64 `json:"id"`
			}
			if json.Unmarshal(message.Params, &cancelled) == nil {
				loop.close(cancelled.ID)
			}
		case message.Method != "" && message.ID != nil:
			var id int64
			if json.Unmarshal(message.ID, &id) == nil {
				loop.take(id, message.Method, message.Params)
			}
		case message.ID != nil:
			loop.hear(message)
		}
	}
}

// request sends a request to the gateway for one of its calls, and waits for the answer.
func (loop *loop) request(call int64) request {
	return func(ctx context.Context, method string, params map[string]any, result any) error {
		answer := make(chan incoming, 1)
		loop.lock.Lock()
		loop.last++
		id := fmt.Sprintf("p%d", loop.last)
		loop.asked[id] = answer
		loop.lock.Unlock()
		defer func() {
			loop.lock.Lock()
			delete(loop.asked, id)
			loop.lock.Unlock()
		}()
		params["call"] = call
		if err := pipe.write(map[string]any{"id": id, "method": method, "params": params}); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case message := <-answer:
			if message.Error != nil {
				return fmt.Errorf("`%s`: %s", method, message.Error.Message)
			}
			return json.Unmarshal(message.Result, result)
		}
	}
}

func (loop *loop) hear(message incoming) {
	var id string
	if json.Unmarshal(message.ID, &id) != nil {
		return
	}
	loop.lock.Lock()
	answer, isAsked := loop.asked[id]
	delete(loop.asked, id)
	loop.lock.Unlock()
	if isAsked {
		answer <- message
	}
}

// close forgets a call, and returns whether it was still open.
func (loop *loop) close(id int64) bool {
	loop.lock.Lock()
	defer loop.lock.Unlock()
	cancel, isOpen := loop.open[id]
	if isOpen {
		delete(loop.open, id)
		cancel()
	}
	return isOpen
}

func (loop *loop) take(id int64, method string, params json.RawMessage) {
	ctx, cancel := context.WithCancel(context.Background())
	loop.lock.Lock()
	loop.open[id] = cancel
	loop.lock.Unlock()
	answer := func() {
		message := map[string]any{"id": id}
		result, err := loop.call(ctx, id, method, params)
		if err != nil {
			message["error"] = map[string]any{"code": codeOf(err), "message": reasonOf(err, method, params)}
		} else {
			message["result"] = result
		}
		// A cancelled call is not answered.
		if loop.close(id) {
			_ = pipe.write(message)
		}
	}
	if method == "hello" || method == "configure" {
		answer()
	} else {
		go answer()
	}
}

func (loop *loop) call(ctx context.Context, id int64, method string, params json.RawMessage) (result any, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = panicked{value: value, place: placeOfPanic()}
		}
	}()
	provider, tools := loop.provider, &Tools{request: loop.request(id)}
	tools.Store = Store{tools.request}
	switch {
	case method == "hello":
		var hello struct {
			Name string `json:"name"`
		}
		if err := json.Unmarshal(params, &hello); err != nil {
			return nil, err
		}
		return provider.hello(hello.Name)
	case method == "configure":
		var said struct {
			Settings Settings `json:"settings"`
		}
		if err := json.Unmarshal(params, &said); err != nil {
			return nil, err
		}
		if provider.Configure == nil {
			return map[string]any{}, nil
		}
		return map[string]any{}, provider.Configure(said.Settings)
	case method == "deliver" && provider.Deliver != nil:
		var message Message
		if err := json.Unmarshal(params, &message); err != nil {
			return nil, err
		}
		message.Tools = tools
		return provider.deliver(ctx, message)
	case method == "hook" && provider.Hook != nil:
		return provider.hook(ctx, params, tools)
	case method == "upgrade" && provider.Upgrade != nil:
		var old struct {
			Record  string `json:"record"`
			Version int    `json:"version"`
		}
		if err := json.Unmarshal(params, &old); err != nil {
			return nil, err
		}
		record, err := provider.Upgrade(ctx, old.Record, old.Version)
		return map[string]any{"record": record}, err
	case method == "maintain" && provider.Maintain != nil:
		var said struct {
			Now int64 `json:"now"`
		}
		if err := json.Unmarshal(params, &said); err != nil {
			return nil, err
		}
		return map[string]any{}, provider.Maintain(ctx, tools, said.Now)
	case method == "recheck" && provider.Recheck != nil:
		var known Known
		if err := json.Unmarshal(params, &known); err != nil {
			return nil, err
		}
		known.Tools = tools
		answer, err := provider.Recheck(ctx, known)
		return answer.result, err
	case (method == "begin" || method == "submit") && provider.Submit != nil:
		var step Step
		if err := json.Unmarshal(params, &step); err != nil {
			return nil, err
		}
		step.Tools = tools
		judge := provider.Submit
		if method == "begin" {
			judge = provider.Begin
		}
		answer, err := judge(ctx, step)
		if err == nil {
			err = provider.check(answer, method)
		}
		return answer.result, err
	}
	return nil, unknownMethod(method)
}

func (provider Provider) deliver(ctx context.Context, message Message) (map[string]any, error) {
	err := provider.Deliver(ctx, message)
	var reason Undelivered
	if errors.As(err, &reason) {
		for _, declared := range provider.DeliveryReasons {
			if declared.Reason == string(reason) {
				return map[string]any{"failed": string(reason)}, nil
			}
		}
	}
	return map[string]any{}, err
}

func (provider Provider) hook(ctx context.Context, params json.RawMessage, tools *Tools) (map[string]any, error) {
	var said struct {
		Headers map[string]string `json:"headers"`
		Body    *string           `json:"body"`
		Base64  []byte            `json:"body_base64"`
		Remote  string            `json:"remote"`
		Now     int64             `json:"now"`
	}
	if err := json.Unmarshal(params, &said); err != nil {
		return nil, err
	}
	if said.Body != nil {
		said.Base64 = []byte(*said.Body)
	}
	webhook := Webhook{Headers: said.Headers, Body: said.Base64, Remote: said.Remote, Now: said.Now, Tools: tools}
	answer, err := provider.Hook(ctx, webhook)
	if err == nil && answer.result == nil {
		err = errors.New("`hook` returned no answer; return Accepted or Rejected")
	}
	return answer.result, err
}

type unknownMethod string

func (method unknownMethod) Error() string {
	return fmt.Sprintf("this provider has no `%s`", string(method))
}

type panicked struct {
	value any
	place string
}

func (fault panicked) Error() string { return fmt.Sprintf("panic (%s): %v", fault.place, fault.value) }

// placeOfPanic is the first line of the author's code on the stack.
func placeOfPanic() string {
	callers := make([]uintptr, 32)
	frames := runtime.CallersFrames(callers[:runtime.Callers(4, callers)])
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, "runtime.") {
			return fmt.Sprintf("%s:%d", path.Base(frame.File), frame.Line)
		}
		if !more {
			return "?"
		}
	}
}

func codeOf(err error) int {
	var unknown unknownMethod
	if errors.As(err, &unknown) {
		return -32601
	}
	return 1
}

// reasonOf is the text for the operator's log: the error, without user input.
//
// Attack: an error quotes invalid input, which may be half of a secret. The gateway redacts whole values; this
// redacts their words.
func reasonOf(err error, method string, params json.RawMessage) string {
	var said struct {
		Fields   map[string]any `json:"fields"`
		Settings map[string]any `json:"settings"`
		Code     string         `json:"code"`
		State    string         `json:"state"`
		Record   string         `json:"record"`
		Account  struct {
			Record string `json:"record"`
		} `json:"account"`
	}
	_ = json.Unmarshal(params, &said)
	values := []string{said.Code, said.State, said.Record, said.Account.Record}
	for _, all := range []map[string]any{said.Fields, said.Settings} {
		for _, value := range all {
			if text, is := value.(string); is {
				values = append(values, text)
			}
		}
	}
	var pieces []string
	for _, value := range values {
		pieces = append(pieces, value)
		isBetween := func(letter rune) bool { return !unicode.IsLetter(letter) && !unicode.IsDigit(letter) }
		pieces = append(pieces, strings.FieldsFunc(value, isBetween)...)
	}
	sort.Slice(pieces, func(left, right int) bool { return len(pieces[left]) > len(pieces[right]) })
	text := err.Error()
	for _, piece := range pieces {
		if len(piece) > 2 {
			text = strings.ReplaceAll(text, piece, "[redacted]")
		}
	}
	return strings.Join(strings.Fields(text), " ")
}
