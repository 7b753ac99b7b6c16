# make run    builds and starts the gateway, a demo service behind it and its outbox
# make test   everything that has to hold, on a clean clone in one command
#
# The debug build serves both: it is there in a few minutes on two cores and is built once. `make run CONFIGURATION=release`
# takes about twice as long to build and is what to measure.
SHELL := /bin/bash
.ONESHELL:
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: prove cluster check-guide check-removal bench-hash bench-policy fuzz fuzz-passkey fuzz-slice help deps test-deps build run test soak unit-test end-to-end bench format lint clean screenshots looks

CONFIGURATION ?= debug
CONFIG ?= config
# The check of who may import whom is part of every build, so that one build is shared by all targets. A debug build compiles a module at once, not
# file by file: that takes two fifths less of the processor's time, since each file's compiler would read what the module's other files declare.
SWIFT_BUILD := swift build -c $(CONFIGURATION) --explicit-target-dependency-import-check error $(if $(filter debug,$(CONFIGURATION)),-Xswiftc -wmo -Xswiftc -num-threads -Xswiftc 2)
SWIFT_FILES := Sources Plugins Tests Package.swift

BUILD_PACKAGES := liblua5.4-dev libsqlite3-dev libphonenumber-dev libargon2-dev libcrypt-dev libcurl4-openssl-dev libqrencode-dev libpq-dev libssl-dev zlib1g-dev
TEST_PACKAGES := curl openssl chromium chromium-driver fonts-lohit-deva fonts-noto-core zbar-tools python3-venv nginx haproxy postgresql faketime iproute2 nghttp2-client nodejs golang-go git cadaver
SOAK_PACKAGES := testssl.sh slowhttptest nghttp2-client
BENCH_PACKAGES := wrk nginx postgresql
VENV := .build-e2e/venv

# $(call need,PACKAGES): installs what is missing of them, or prints the one command that does.
define need
missing=; for package in $(1); do
  dpkg-query -W -f='$${Status}' "$$package" 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$package"
done
if [ -n "$$missing" ]; then
  if ! command -v apt-get >/dev/null; then
    echo "Moongate needs these Debian packages, or your system's own names for them:$$missing" >&2; exit 1
  elif [ "$$(id -u)" = 0 ]; then as_root=
  elif sudo -n true 2>/dev/null; then as_root=sudo
  else echo "Some system packages are missing. Run:  sudo apt-get install$$missing" >&2; exit 1; fi
  echo "Installing$$missing"
  $$as_root apt-get update -qq
  $$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null
fi
endef

help:
	@sed -n 's/^# //p' Makefile | head -2

deps:
	@command -v swift >/dev/null || { echo "Swift 6.3 or later is needed: https://www.swift.org/install" >&2; exit 1; }
	$(call need,$(BUILD_PACKAGES))

test-deps: deps
	@$(call need,$(TEST_PACKAGES))

build: deps
	@echo "Building (the first time three to five minutes on two cores)"
	$(SWIFT_BUILD)

run: build
	@bin=$$($(SWIFT_BUILD) --show-bin-path)
	set -m
	"$$bin/demo-service" & demo=$$!
	"$$bin/moongate" serve --config $(CONFIG) & gateway=$$!
	set +m
	finish() { trap - INT TERM EXIT; kill $$gateway $$demo 2>/dev/null || :; wait; }
	trap 'finish; exit 0' INT TERM
	trap finish EXIT
	for try in $$(seq 150); do
	  kill -0 $$gateway 2>/dev/null && kill -0 $$demo 2>/dev/null || { echo "Not started: see the line above." >&2; exit 1; }
	  curl -fs -o /dev/null http://127.0.0.1:9901/readyz && break
	  sleep 0.1
	done
	printf '%s\n' '' \
	  'The gateway        http://localhost:8080           open this: it leads to sign-in, then to the service' \
	  'The outbox         http://127.0.0.1:9901/outbox    the codes that would go out by SMS' \
	  'The demo service   http://127.0.0.1:3000           what the gateway protects, without it' '' \
	  '1. Open the gateway, choose "Create Account", and type a number such as 99999 99999.' \
	  '2. Read the code in the outbox, and type it.' \
	  '3. Change a number in config/policies/phone_otp.lua and see it hold at the next try.' '' \
	  'Ctrl-C ends it all.' ''
	wait -n $$gateway $$demo || :

# Two gateways with nginx in front and a throwaway PostgreSQL behind, by the files of config/README.md ("Several gateways, one store").
cluster: build
	@$(call need,postgresql nginx python3)
	MOONGATE_BIN=$$($(SWIFT_BUILD) --show-bin-path) exec python3 Tests/EndToEnd/cluster.py

test: lint unit-test fuzz-slice end-to-end

unit-test: test-deps
	@$(SWIFT_BUILD) --build-tests
	# One at a time, since many of them measure time; but the store's, which wait for disks and databases, beside all others. Of thousands of lines
	# those that tell what failed are said once more, at the end.
	tests=$$($(SWIFT_BUILD) --show-bin-path)/moongatePackageTests.xctest
	said=$$(mktemp -d); trap 'rm -rf "$$said"' EXIT
	run() { "$$tests" --testing-library swift-testing --no-parallel "$${@:2}" >"$$said/$$1" 2>&1 || again "$$1" || echo "$$?" >"$$said/$$1.failed"; }
	# A test that fails beside others on a busy machine gets one more try by itself, and is named. What crashes, or has no name to filter by, gets none.
	again() {
	  grep -qE '^✘ Test run with .* failed' "$$said/$$1" && ! grep -qE '^✘ Test "' "$$said/$$1" || return 1
	  names=$$(sed -nE 's/^✘ Test ([A-Za-z0-9_]+)\(.*\) .*failed after.*/\1/p' "$$said/$$1" | sort -u); [ -n "$$names" ] || return 1
	  "$$tests" --testing-library swift-testing --no-parallel --filter "/($$(paste -sd'|' <<<"$$names"))\(" >"$$said/$$1.again" 2>&1 && grep -qE 'Test run with [1-9]' "$$said/$$1.again" || return 1
	  echo "$$names" >>"$$said/second"
	}
	run stores --filter '^MoongateStoreTests' & run others --skip '^MoongateStoreTests' & wait
	cat "$$said/stores" "$$said/others"
	if compgen -G "$$said/*.failed" >/dev/null; then { printf '\nWhat failed:\n'; grep -hE '✘|error:|Fatal' "$$said"/*; exit 1; } >&2; fi
	if [ -f "$$said/second" ]; then { printf '\nPassed at the second try only, which is a defect of the test:\n'; cat "$$said/second"; } >&2; fi

# Takes shipped providers, one after the other, out of a copy of the sources and builds the rest: PLUGIN="PIN TOTP", EmailCode unless said otherwise. Minutes,
# so it is no part of `make test`; the copy keeps its build, so each one after the first costs little.
check-removal: deps
	@for plugin in $(or $(PLUGIN),EmailCode); do SWIFT_BUILD="$(SWIFT_BUILD)" python3 Tests/Removal/remove_provider.py "$$plugin" .build-e2e/removal || exit 1; done

# Plugins/README.md as a reader follows it, in Swift too: builds packages outside the repository, and Moongate once more. Needs any build first.
check-guide: test-deps $(VENV)/ready
	@export MOONGATE_GUIDE=1 MOONGATE_NEW_PROVIDER=1 MOONGATE_BIN=$$($(SWIFT_BUILD) --show-bin-path)
	$(VENV)/bin/python -m pytest Tests/EndToEnd/test_guide.py Tests/EndToEnd/test_provider_new.py -q

# Drives the built programs: needs unit-test's (or any) build first. Most of the tests wait most of the time, so files run side by side; what
# measures time or memory runs alone behind them.
WORKERS ?= 4
end-to-end: test-deps $(VENV)/ready
	@export MOONGATE_BIN=$$($(SWIFT_BUILD) --show-bin-path)
	run() { $(VENV)/bin/python -m pytest Tests/EndToEnd -q "$$@"; }
	# What fails beside others on a busy machine gets one more try by itself, and is named: pytest leaves with 1 where tests failed, and only then.
	again() { [ $$? = 1 ] && printf '\nOnce more, alone. What passes now is a defect of the test all the same:\n' && run -v --last-failed --last-failed-no-failures none; }
	run -m "not alone" -n $(WORKERS) --dist loadfile || again
	run -m alone || again

$(VENV)/ready: Tests/EndToEnd/requirements.txt
	@$(call need,python3-venv)
	rm -rf $(VENV)
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install -q --disable-pip-version-check -r Tests/EndToEnd/requirements.txt
	touch $@

# Every page and state as pictures, in .build-e2e/screenshots: needs any build first.
screenshots: test-deps $(VENV)/ready
	@MOONGATE_BIN=$$($(SWIFT_BUILD) --show-bin-path) $(VENV)/bin/python Tests/EndToEnd/screenshots.py .build-e2e/screenshots

# Every test of a page in every look, where `make test` runs each in one of them: needs any build first.
looks: test-deps $(VENV)/ready
	@MOONGATE_BIN=$$($(SWIFT_BUILD) --show-bin-path) $(VENV)/bin/python -m pytest Tests/EndToEnd -q -k test_pages --looks all

# What takes too long for `make test`, half an hour: outside suites (testssl, slowhttptest, h2load, schemathesis), request framing beside h11 and
# llhttp with other dice every time, and memory under slow readers. Needs any build first.
soak: test-deps $(VENV)/ready
	@$(call need,$(SOAK_PACKAGES))
	export MOONGATE_BIN=$$($(SWIFT_BUILD) --show-bin-path) MOONGATE_API_SECONDS=600 MOONGATE_API_EXAMPLES=500 MOONGATE_API_PHASES=examples,coverage,fuzzing,stateful
	export MOONGATE_FRAMING_SECONDS=300 MOONGATE_FRAMING_SEED=$$RANDOM
	$(VENV)/bin/python -m pytest Tests/EndToEnd/soak_wire.py Tests/EndToEnd/test_framing.py Tests/EndToEnd/test_description.py -v -rP --durations=0
	python3 Tests/Bench/slow_readers.py

# CLua under AddressSanitizer and UndefinedBehaviorSanitizer. LUA_SOURCE=…/lua-5.4.4/src has Lua itself built so too; without
# it Lua is the system's, and its heap is still watched.
FUZZ_ROUNDS ?= 300000
FUZZ_SECONDS ?= 300
FUZZ_SEED ?= 1
LUA_SOURCE ?=
FUZZ_BIN := .build-fuzz/fuzz
FUZZ_LUA := $(filter-out %/lua.c %/luac.c %/onelua.c %/ltests.c,$(wildcard $(LUA_SOURCE)/*.c))

$(FUZZ_BIN): $(wildcard Sources/CLua/*.c Sources/CLua/*.h Sources/CLua/include/*.h) Tests/Fuzz/fuzz.c $(FUZZ_LUA)
	@mkdir -p $(@D)
	$(CC) -std=gnu17 -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all -ISources/CLua/include -o $@ \
	  Sources/CLua/*.c Tests/Fuzz/fuzz.c $(if $(FUZZ_LUA),$(FUZZ_LUA) -DLUA_USE_POSIX,-llua5.4) -lm

fuzz: deps $(FUZZ_BIN)
	@$(FUZZ_BIN) $(FUZZ_ROUNDS) $(FUZZ_SECONDS) $(FUZZ_SEED) Tests/Fuzz/corpus/*.lua

# The readers of what authenticators say (Plugins/Passkey), under AddressSanitizer.
fuzz-passkey: deps
	@mkdir -p .build-fuzz
	@swiftc -O -sanitize=address $(addprefix Plugins/Passkey/,CBOR.swift AuthenticatorData.swift Base64URL.swift) Tests/Fuzz/Passkey/main.swift -o .build-fuzz/passkey
	@.build-fuzz/passkey 1000000 $(FUZZ_SEED)

# What `make test` runs of it.
fuzz-slice: deps $(FUZZ_BIN)
	@$(FUZZ_BIN) 20000 10 1 Tests/Fuzz/corpus/*.lua

bench-policy: deps
	@swift build -c release --product policy-bench
	$$(swift build -c release --show-bin-path)/policy-bench

bench-hash: deps
	@swift build -c release --product hash-bench
	$$(swift build -c release --show-bin-path)/hash-bench

bench-exec: deps
	@swift build -c release --product exec-bench
	$$(swift build -c release --show-bin-path)/exec-bench

# Ten thousand random configurations: what the prover says of each is what happens when it is played to every end.
prove: deps
	@swift build -c release --product prove
	$$(swift build -c release --show-bin-path)/prove $(or $(CONFIGURATIONS),10000) $(or $(SEED),1)

bench: deps bench-policy bench-hash bench-exec
	@$(call need,$(BENCH_PACKAGES) curl python3-venv)
	swift build -c release
	MOONGATE_BIN=$$(swift build -c release --show-bin-path) python3 Tests/Bench/bench.py
	MOONGATE_BIN=$$(swift build -c release --show-bin-path) python3 Tests/Bench/tokens.py
	MOONGATE_BIN=$$(swift build -c release --show-bin-path) python3 Tests/Bench/signins.py
	MOONGATE_BIN=$$(swift build -c release --show-bin-path) python3 Tests/Bench/pages.py
	MOONGATE_BIN=$$(swift build -c release --show-bin-path) python3 Tests/Bench/memory.py
	MOONGATE_BIN=$$(swift build -c release --show-bin-path) python3 Tests/Bench/registrations.py
	MOONGATE_BIN=$$(swift build -c release --show-bin-path) python3 Tests/Bench/nodes.py

format:
	@swift format --in-place --parallel --recursive $(SWIFT_FILES)

lint:
	@swift format lint --strict --parallel --recursive $(SWIFT_FILES)

clean:
	@swift package clean
